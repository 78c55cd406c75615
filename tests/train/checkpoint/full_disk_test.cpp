// A disk that is full at any phase of a run: with room given back the run ends right, and a trained
// model waits for room and is not lost. On a small file system of its own, mounted where only this
// process and its children see it. A sample of the phases here; FERRY_LONG=1: all.

#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "offload/nvme/open_disk.h"
#include "offload/store/store.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/store_place.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class FullDisk : public RunTest {
 protected:
  void SetUp() override {
    const bool is_root = geteuid() == 0;
    const uid_t user = getuid();
    if (::unshare(CLONE_NEWNS | (is_root ? 0 : CLONE_NEWUSER)) != 0)
      GTEST_SKIP() << "no mount namespace of its own: " << std::strerror(errno);
    if (!is_root) std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    fs::create_directories(small());
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("ferry_test", small().c_str(), "tmpfs", 0, "size=32m") != 0)
      GTEST_SKIP() << "no file system may be mounted: " << std::strerror(errno);
    is_mounted_ = true;
  }
  void TearDown() override {
    if (is_mounted_) ::umount2(small().c_str(), MNT_DETACH);
  }
  static fs::path small() { return root_ / "small"; }

  /** Takes all room again and again, until the run says that it waits; a checkpoint that failed
   * gives back what it had. */
  static void fill_until_it_waits() {
    std::ofstream filler(small() / "filler", std::ios::binary);
    const std::string block(4096, 'x');
    wait_until([&] {
      filler.clear();
      while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
      }
      return text_of(root_ / "err").find("the run waits for room") != std::string::npos;
    });
  }
  static std::vector<std::string> long_run(const std::string& run,
                                           std::vector<std::string> more = {}) {
    more.emplace_back("--epochs=12");
    return new_run(run, more);
  }
  static pid_t run_into_a_full_disk(const std::string& run,
                                    const std::vector<std::string>& more = {}) {
    const pid_t child = start(long_run("small/" + run, more));
    wait_until([&] { return fs::exists(small() / run / "checkpoint-7/COMPLETE"); });
    fill_until_it_waits();
    return child;
  }

 private:
  bool is_mounted_ = false;
};

TEST_F(FullDisk, TheTrainedModelWaitsForRoom) {
  ASSERT_EQ(ferry(long_run("whole")).code(), 0) << text_of(root_ / "err");
  const pid_t child = run_into_a_full_disk("late");
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it waits";
  EXPECT_FALSE(fs::exists(small() / "late/final"));
  fs::remove(small() / "filler");
  const Outcome outcome = wait_for(child);
  EXPECT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_NE(outcome.err.find("No space left on device"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("there is room again"), std::string::npos) << outcome.err;
  EXPECT_EQ(text_of(root_ / "whole/final/model.safetensors"),
            text_of(small() / "late/final/model.safetensors"));
  const auto about = nlohmann::json::parse(text_of(small() / "late/run.json"));
  EXPECT_EQ(about.at("phase"), "finished");
  EXPECT_FALSE(about.contains("waits_for"));
}

/** The run's directory is full, its states lie elsewhere: a checkpoint without its files keeps
 * nothing there. */
TEST_F(FullDisk, ACheckpointThatFailsPinsNothing) {
  fs::create_directories(root_ / "drive");
  const pid_t child = run_into_a_full_disk(
      "pinned", {"--placement=nvme", "--nvme-path=" + (root_ / "drive").string()});
  std::vector<std::string> complete, pins;
  for (const auto& checkpoint : runs::complete_checkpoints(small() / "pinned"))
    complete.push_back(checkpoint.path.filename().string());
  {
    const auto place = runs::store_place_of(small() / "pinned").value();
    const auto disk = open_disk(place.paths(), place.n_bytes, {.reads_only = true});
    pins = ExtentStore(*disk, {}, ExtentStore::Access::read_only).pins();
  }
  EXPECT_EQ(pins, complete);
  EXPECT_NE(complete.back(), "checkpoint-300");
  fs::remove(small() / "filler");
  const Outcome outcome = wait_for(child);
  EXPECT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_NE(outcome.err.find("could not be written"), std::string::npos) << outcome.err;
  EXPECT_EQ(ferry({"runs", "check", "small/pinned"}).code(), 0) << text_of(root_ / "err");
}

TEST_F(FullDisk, CtrlCLeavesWithoutIt) {
  const pid_t child = run_into_a_full_disk("left");
  ::kill(child, SIGINT);
  const Outcome outcome = wait_for(child);
  EXPECT_EQ(outcome.code(), 130) << outcome.err;
  EXPECT_NE(outcome.err.find("stopped without saving, at step 300; continue from step "),
            std::string::npos)
      << outcome.err;
  fs::remove(small() / "filler");
  EXPECT_EQ(ferry({"train", "--resume=small/left"}).code(), 0) << text_of(root_ / "err");
  EXPECT_TRUE(fs::exists(small() / "left/final"));
}

TEST_F(FullDisk, TokensThatDoNotFitAreAFault) {
  {
    std::ofstream lines(root_ / "lines.txt");
    for (int i = 0; i < 800'000; ++i)
      lines << "the red car is old\n";
  }
  const auto run = [](const std::string& cache) {
    return ferry({"train", "--model=model", "--task=mlm", "--dataset=lines.txt", "--device=cpu",
                  "--max-steps=1", "--train-batch-size=4", "--max-length=16", "--output-dir=tokens",
                  "--token-cache=" + cache});
  };
  const Outcome full = run("small/tokens");
  EXPECT_EQ(full.code(), 5) << full.err;
  for (const char* part :
       {"the disk of '", "is full after ", "name another directory with token_cache"})
    EXPECT_NE(full.err.find(part), std::string::npos) << full.err;
  for (const auto& entry : fs::directory_iterator(small() / "tokens"))
    EXPECT_EQ(entry.path().extension(), ".files") << entry.path();
  EXPECT_FALSE(fs::exists(root_ / "tokens"));
}

/** The phase of a run at which the disk is full: just before it makes such a file, or writes such
 * bytes (file_moments.cpp), for the nth time. */
struct FullAt {
  const char* name;
  std::string path, bytes;
  int nth = 1;
  bool is_quick = false;
  bool refuses = false;     ///< the run does not begin; with room the same command does
  bool loses_best = false;  ///< the best model's checkpoint is the one that fails
};

class FullPhases : public FullDisk {
 protected:
  static constexpr int kLast = 75;

  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_language_model(root_ / "decoder");
    write_tiny_documents(root_ / "docs.jsonl", 200, 1);
    write_tiny_documents(root_ / "docs_dev.jsonl", 40, 2);
  }
  /** All that a run writes, with rates so high that the last model is not the best. */
  static std::vector<std::string> all_of_it(const std::string& run, int limit = 1) {
    return new_run(run,
                   {"--model=decoder", "--task=causal-lm", "--dataset=docs.jsonl",
                    "--eval-dataset=docs_dev.jsonl", "--max-length=16", "--device=cpu", "--lr=0.05",
                    "--eval-strategy=steps", "--eval-steps=5", "--load-best-model-at-end=true",
                    "--save-total-limit=" + std::to_string(limit), "--sample-prompts=the old",
                    "--sample-steps=10", "--max-new-tokens=4"});
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
    return best.value().second;
  }
  static std::vector<FullAt> phases(int best) {
    const std::string of_best = "checkpoint-" + std::to_string(best) + ".tmp";
    return {
        {.name = "settings", .path = "/.config.toml.", .bytes = {}, .refuses = true},
        {.name = "state", .path = "/.run.json.", .bytes = {}, .refuses = true},
        {.name = "curves", .path = "/tensorboard/events", .bytes = {}, .refuses = true},
        {.name = "first_samples", .path = "/samples/.step-000000", .bytes = {}},
        {.name = "first_line", .path = {}, .bytes = "{\"step\":1,"},
        {.name = "first_checkpoint", .path = "/checkpoint-5.tmp", .bytes = {}, .is_quick = true},
        {.name = "weights", .path = "/checkpoint-14.tmp/.model.safetensors", .bytes = {}},
        {.name = "mark", .path = "/checkpoint-14/.COMPLETE", .bytes = {}},
        {.name = "evaluation", .path = "/.predictions.jsonl.", .bytes = {}, .nth = 4},
        {.name = "evaluation_line", .path = {}, .bytes = "\"eval_loss\"", .nth = 4},
        {.name = "samples", .path = "/samples/.step-000030", .bytes = {}},
        {.name = "best", .path = of_best, .bytes = {}, .is_quick = true, .loses_best = true},
        {.name = "last_line", .path = {}, .bytes = "{\"step\":75,"},
        {.name = "last_samples", .path = "/samples/.step-000075", .bytes = {}},
        {.name = "last_checkpoint", .path = "/checkpoint-75.tmp", .bytes = {}},
        {.name = "predictions", .path = "/.predictions.jsonl.", .bytes = {}, .nth = 16},
        {.name = "final", .path = "/final.partial", .bytes = {}, .is_quick = true},
        {.name = "weights_of_final", .path = "/final.partial/.model", .bytes = {}},
        {.name = "end", .path = {}, .bytes = "\"phase\": \"finished\""},
    };
  }

  static void fill() {
    std::ofstream filler(small() / "filler", std::ios::binary);
    for (const size_t n_bytes : {size_t{65536}, size_t{1}}) {
      const std::string block(n_bytes, 'x');
      while (filler.write(block.data(), std::ssize(block)).flush()) {
      }
      filler.clear();
    }
  }
  /** Runs with a full disk from that moment on; there is room again as soon as the run has told
   * that there is none. */
  static Outcome run_full_at(const FullAt& at, const std::vector<std::string>& words) {
    const fs::path stopped = root_ / "stopped";
    const pid_t child = start_ferry(root_, words, "", [&] {
      ::setenv("LD_PRELOAD", FILE_MOMENTS, 1);
      ::setenv("MOMENT_FILE", stopped.c_str(), 1);
      ::setenv("MOMENT_NTH", std::to_string(at.nth).c_str(), 1);
      if (!at.path.empty()) ::setenv("MOMENT_PATH", at.path.c_str(), 1);
      if (!at.bytes.empty()) ::setenv("MOMENT_WRITE", at.bytes.c_str(), 1);
    });
    wait_until([&] { return fs::exists(stopped) || has_ended_within(child, 0ms); });
    EXPECT_TRUE(fs::exists(stopped)) << "no such moment";
    fill();
    fs::remove(stopped);
    const auto patience = std::chrono::steady_clock::now() + 2s;
    while (text_of(root_ / "err").find("No space left") == std::string::npos &&
           std::chrono::steady_clock::now() < patience && !has_ended_within(child, 1ms)) {
    }
    fs::remove(small() / "filler");
    return await_end(child);
  }

  static std::map<std::string, std::string> samples_of(const std::string& run) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(root_ / run / "samples"))
      files[entry.path().filename().string()] = text_of(entry.path());
    return files;
  }
  /** Event files have as many bytes as points. */
  static uintmax_t curve_bytes_of(const std::string& run) {
    uintmax_t n_bytes = 0;
    for (const auto& entry : fs::directory_iterator(root_ / run / "tensorboard"))
      n_bytes += fs::file_size(entry.path());
    return n_bytes;
  }
  static bool says(const std::string& what) {
    return (text_of(root_ / "out") + text_of(root_ / "err")).find(what) != std::string::npos;
  }
  /** The run has ended, and all of it is there. `whole` has the checkpoints of all evaluations. */
  static void expect_right_end(const std::string& whole, const std::string& run, bool loses_best) {
    const int best = best_step_of(whole);
    EXPECT_EQ(curve_of(whole), curve_of(run));
    EXPECT_EQ(samples_of(whole), samples_of(run));
    const auto about = nlohmann::json::parse(text_of(root_ / run / "run.json"));
    EXPECT_EQ(about.at("phase"), "finished");
    EXPECT_FALSE(about.contains("waits_for"));
    for (const auto& entry : fs::recursive_directory_iterator(root_ / run)) {
      const std::string name = entry.path().filename().string();
      for (const char* part : {".tmp", ".partial", ".old"})
        EXPECT_EQ(name.find(part), std::string::npos) << entry.path();
    }
    const std::string sentence = "the best evaluation was after step " + std::to_string(best);
    EXPECT_TRUE(says(sentence));
    const std::string model = text_of(root_ / run / "final/model.safetensors");
    std::set<int> same;
    for (int step = 5; step <= kLast; step += 5)
      if (model ==
          text_of(root_ / whole / ("checkpoint-" + std::to_string(step)) / "model.safetensors"))
        same.insert(step);
    ASSERT_EQ(same.size(), 1u) << "its final model is of one evaluation";
    const int kept = *same.begin();
    EXPECT_EQ(kept != best, loses_best) << kept;
    EXPECT_EQ(about.contains("warning"), kept != best);
    if (kept == best) {
      EXPECT_TRUE(says(sentence + ": the model is of that step"));
      EXPECT_EQ(text_of(root_ / whole / "predictions.jsonl"),
                text_of(root_ / run / "predictions.jsonl"));
      return;
    }
    const std::string warning =
        sentence + ", which has no complete checkpoint: final/ has the model of step " +
        std::to_string(kept);
    EXPECT_TRUE(says("warning: " + warning));
    EXPECT_NE(about.value("warning", "").find(warning), std::string::npos) << about["warning"];
    EXPECT_EQ(ferry({"train", "--resume=" + run}).code(), 0);
    EXPECT_TRUE(says(warning)) << "asked again";
  }
};

TEST_F(FullPhases, WithRoomAgainTheRunEndsRight) {
  ASSERT_EQ(ferry(all_of_it("whole", 100)).code(), 0) << text_of(root_ / "err");
  const int best = best_step_of("whole");
  ASSERT_NE(best, kLast) << "the last step would be the final model anyhow";
  for (const FullAt& at : phases(best)) {
    if (!is_long() && !at.is_quick) continue;
    SCOPED_TRACE(at.name);
    const std::string run = std::string("small/") + at.name;
    Outcome outcome = run_full_at(at, all_of_it(run));
    EXPECT_EQ(outcome.code(), at.refuses ? 5 : 0) << outcome.err;
    if (at.refuses) {
      EXPECT_NE(outcome.err.find("No space left"), std::string::npos) << outcome.err;
      outcome = ferry(fs::exists(root_ / run / "config.toml")
                          ? std::vector<std::string>{"train", "--resume=" + run}
                          : all_of_it(run));
      EXPECT_EQ(outcome.code(), 0) << outcome.err;
    } else {
      EXPECT_EQ(curve_bytes_of("whole"), curve_bytes_of(run));
      // The log waits for room with what was said meanwhile.
      EXPECT_EQ(outcome.err.find("No space left") == std::string::npos,
                text_of(root_ / run / "train.log").find("No space left") == std::string::npos);
    }
    expect_right_end("whole", run, at.loses_best);
    fs::remove_all(root_ / run);
  }
}

/** A run that is refused for want of room leaves nothing, and begins where there is some. */
TEST_F(FullPhases, ARunThatFindsNoRoomBeginsLater) {
  fill();
  const Outcome refused = ferry(all_of_it("small/late"));
  EXPECT_EQ(refused.code(), 3) << refused.err;
  EXPECT_FALSE(fs::exists(small() / "late"));
  fs::remove(small() / "filler");
  EXPECT_EQ(ferry(all_of_it("small/late")).code(), 0) << text_of(root_ / "err");
}

}  // namespace
}  // namespace ferry::test
