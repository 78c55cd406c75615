// A run that ends with its best model, its states on a drive, killed between an evaluation and the
// checkpoint of it: the step that it goes on from is safe on the drive, and so must be the best
// model, with the bits of a run that never stopped.

#include <sys/resource.h>

#include <optional>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

/** Where in a run's work with files it stops, and is killed: see file_moments.cpp. */
using Moment = std::vector<std::pair<std::string, std::string>>;

class BestKept : public RunTest {
 protected:
  /** Rates so high that the last model is not the best, or as they are. */
  static std::vector<std::string> options(bool is_last_best) {
    std::vector<std::string> words = {"--eval-strategy=steps", "--eval-steps=5",
                                      "--load-best-model-at-end=true", "--save-total-limit=1",
                                      "--save-steps=100"};  // a later one would wait for it
    if (!is_last_best) words.emplace_back("--lr=0.05");
    return words;
  }
  static std::vector<std::string> on_drive(bool is_last_best) {
    fs::create_directories(root_ / "drive");
    auto words = options(is_last_best);
    words.insert(words.end(), {"--placement=nvme", "--nvme-path=" + (root_ / "drive").string()});
    return words;
  }
  /** The line of an evaluation, up to its first result. */
  static std::string line_of(const std::string& run, int step) {
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    const std::string start = "{\"step\":" + std::to_string(step) + ",";
    for (std::string line; std::getline(lines, line);)
      if (const size_t end = line.find("\"eval_loss\"");
          line.starts_with(start) && end != line.npos)
        return line.substr(0, end);
    return "no such line";
  }
  static int best_step_of(const std::string& run) {
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    std::optional<std::pair<double, int>> best;
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      if (!json.contains("eval_loss")) continue;
      const std::pair now(json["eval_loss"].get<double>(), json["step"].get<int>());
      best = best ? std::min(*best, now) : now;
    }
    return best ? best->second : -1;
  }
  /** Starts the run, and kills it where it has stopped and `holds()`. */
  template <typename Holds>
  static void kill_at(const Moment& moment,
                      const std::vector<std::string>& words,
                      const Holds& holds) {
    const fs::path stopped = root_ / "stopped";
    fs::remove(stopped);
    const pid_t child = start_ferry(root_, words, "", [&] {
      ::setenv("LD_PRELOAD", FILE_MOMENTS, 1);
      ::setenv("MOMENT_FILE", stopped.c_str(), 1);
      for (const auto& [name, value] : moment)
        ::setenv(name.c_str(), value.c_str(), 1);
    });
    wait_until([&] { return fs::exists(stopped) && holds(); });
    ::kill(child, SIGKILL);
    wait_for(child);
  }
  static void expect_ends_as(const std::string& whole, const std::string& run, int best_step) {
    ASSERT_EQ(ferry({"train", "--resume=" + run}).code(), 0) << text_of(root_ / "err");
    EXPECT_NE(text_of(root_ / "out")
                  .find("the best evaluation was after step " + std::to_string(best_step) +
                        ": the model is of that step"),
              std::string::npos)
        << text_of(root_ / "out");
    EXPECT_EQ(curve_of(whole), curve_of(run));
    for (const char* file : {"final/model.safetensors", "predictions.jsonl"})
      EXPECT_TRUE(text_of(root_ / whole / file) == text_of(root_ / run / file)) << file;
    fs::remove_all(root_ / run);
    fs::remove(root_ / "drive" / (run + ".states"));
  }
};

TEST_F(BestKept, KilledBetweenAnEvaluationAndItsCheckpoint) {
  for (const bool is_last_best : {false, true}) {
    const std::string whole = is_last_best ? "whole_last" : "whole_mid";
    ASSERT_EQ(ferry(new_run(whole, options(is_last_best))).code(), 0) << text_of(root_ / "err");
    const int best = best_step_of(whole);
    ASSERT_EQ(best == 75, is_last_best) << best;
    kill_at({{"MOMENT_WRITE", line_of(whole, best)}, {"MOMENT_AFTER", "1"}},
            new_run("killed", on_drive(is_last_best)), [] { return true; });
    EXPECT_FALSE(fs::exists(root_ / ("killed/checkpoint-" + std::to_string(best))));
    expect_ends_as(whole, "killed", best);
  }
}

/** Steps go on while a checkpoint is written. */
TEST_F(BestKept, KilledBeforeTheCheckpointIsCompleteItGoesBack) {
  ASSERT_EQ(ferry(new_run("whole", options(false))).code(), 0) << text_of(root_ / "err");
  const int best = best_step_of("whole");
  // The run's first evaluation has no checkpoint before it.
  for (const int step : {best, 5}) {
    const std::string checkpoint = "checkpoint-" + std::to_string(step);
    kill_at({{"MOMENT_PATH", checkpoint + ".tmp/.trainer_state"}},
            new_run("killed", on_drive(false)), [&] {
              return text_of(root_ / "killed/metrics.jsonl")
                         .find("{\"step\":" + std::to_string(step + 4) + ",") != std::string::npos;
            });
    ASSERT_FALSE(fs::exists(root_ / "killed" / checkpoint));
    expect_ends_as("whole", "killed", best);
    EXPECT_NE(text_of(root_ / "err").find("the run goes back"), std::string::npos)
        << text_of(root_ / "err");
  }
}

/** A checkpoint that cannot be written before anything was evaluated is said, and no more. */
TEST_F(BestKept, ACheckpointThatFailsBeforeTheFirstEvaluationIsSaid) {
  auto words = options(false);
  words.insert(words.end(), {"--save-steps=3", "--max-steps=10"});
  ASSERT_EQ(ferry(new_run("unlimited", words)).code(), 0) << text_of(root_ / "err");
  const pid_t child = start_ferry(root_, new_run("limited", words), "", [] {
    const rlimit files = {40 << 10, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &files);
  });
  const Outcome limited = wait_for(child);
  ASSERT_TRUE(WIFEXITED(limited.status)) << limited.err;
  EXPECT_NE(limited.err.find("checkpoint-3 could not be written, and there is none before it"),
            std::string::npos)
      << limited.err;
  ASSERT_EQ(ferry({"train", "--resume=limited"}).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(text_of(root_ / "limited/final/model.safetensors"),
            text_of(root_ / "unlimited/final/model.safetensors"));
}

/** The model is there, and run.json does not say so yet. */
TEST_F(BestKept, KilledBesideItsModelTheRunIsFinished) {
  // A loss that ends far above its start is warned of.
  const auto diverging = [](const std::string& run) {
    return new_run(run, {"--lr=1", "--lr-scheduler-type=constant", "--max-grad-norm=0"});
  };
  for (const char* earlier : {"whole", "killed"})
    fs::remove_all(root_ / earlier);
  ASSERT_EQ(ferry(diverging("whole")).code(), 0) << text_of(root_ / "err");
  const auto about = [](const std::string& run) {
    return nlohmann::json::parse(text_of(root_ / run / "run.json"));
  };
  const std::string warning = about("whole").value("warning", "");
  ASSERT_NE(warning, "");
  kill_at({{"MOMENT_WRITE", "\"phase\": \"finished\""}}, diverging("ended"), [] { return true; });
  ASSERT_TRUE(fs::exists(root_ / "ended/final"));
  ASSERT_NE(about("ended").at("phase"), "finished");
  EXPECT_EQ(ferry({"train", "--resume=ended"}).code(), 0) << text_of(root_ / "err");
  EXPECT_NE(text_of(root_ / "out").find("warning: " + warning), std::string::npos)
      << text_of(root_ / "out");
  EXPECT_EQ(about("ended").at("phase"), "finished");
  EXPECT_EQ(about("ended").at("exit_reason"), "finished");
  EXPECT_EQ(about("ended").value("warning", ""), warning);
}

}  // namespace
}  // namespace ferry::test
