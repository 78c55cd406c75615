// Promise 2 of the design under kill -9: a run that is killed at random moments and resumed, at
// other places and thread counts, ends with the bits of one that never stopped. A seeded sample here;
// FERRY_LONG=1: all.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "tests/train/tiny_model.h"

namespace ferry::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

bool is_long() {
  const char* text = std::getenv("FERRY_LONG");
  return text && std::string(text) == "1";
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct Outcome {
  int status = 0;  // of waitpid
  std::string err;
  bool was_killed() const { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
  int code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
};

class Resume : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = fs::temp_directory_path() / ("ferry_resume_" + std::to_string(getpid()));
    fs::create_directories(root_);
    write_tiny_model(root_ / "model");
    write_tiny_data(root_ / "train.tsv", 200, 1);
    write_tiny_data(root_ / "dev.tsv", 40, 2);
  }
  static void TearDownTestSuite() { fs::remove_all(root_); }

  static pid_t start(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {FERRY_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const pid_t child = fork();
    if (child != 0) return child;
    std::vector<char*> pointers;
    for (std::string& word : words)
      pointers.push_back(word.data());
    pointers.push_back(nullptr);
    setenv("FERRY_TRAINER", FERRY_TRAINER_BINARY, 1);
    if (chdir(root_.c_str()) != 0) _exit(126);
    for (auto [name, target] : {std::pair{"out", 1}, {"err", 2}})
      dup2(open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666), target);
    execv(FERRY_BINARY, pointers.data());
    _exit(127);
  }
  static Outcome wait_for(pid_t child) {
    Outcome outcome;
    waitpid(child, &outcome.status, 0);
    outcome.err = text_of(root_ / "err");
    return outcome;
  }
  static Outcome ferry(const std::vector<std::string>& arguments) {
    return wait_for(start(arguments));
  }
  /** Killed after `delay`, unless it has ended. */
  static Outcome ferry_killed_after(const std::vector<std::string>& arguments,
                                    std::chrono::milliseconds delay) {
    const pid_t child = start(arguments);
    std::this_thread::sleep_for(delay);
    ::kill(child, SIGKILL);
    return wait_for(child);
  }
  static std::vector<std::string> new_run(const std::string& run,
                                          std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"train",
                                      "--model=model",
                                      "--dataset=train.tsv",
                                      "--eval-dataset=dev.tsv",
                                      "--device=simulated",
                                      "--micro-batch-size=4",
                                      "--train-batch-size=8",
                                      "--lr=3e-3",
                                      "--epochs=3",
                                      "--save-steps=7",
                                      "--intra-op-threads=1",
                                      "--output-dir=" + run};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /** Goes on where the run can, else starts it. */
  static std::vector<std::string> go_on(const std::string& run,
                                        const std::vector<std::string>& more = {}) {
    if (!fs::exists(root_ / run / "config.toml")) return new_run(run, more);
    std::vector<std::string> words = {"train", "--resume=" + run};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /** Loss, norm and rate of every step. */
  static std::string curve_of(const std::string& run) {
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    std::string curve;
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.contains("save_seconds")) continue;  // written when the disk was done
      for (const char* key : {"step", "loss", "grad_norm", "learning_rate", "eval_loss",
                              "num_input_tokens_seen"})
        if (json.contains(key)) curve += std::string(key) + json[key].dump() + " ";
      curve += "\n";
    }
    return curve;
  }
  static fs::path last_checkpoint(const std::string& run) {
    return root_ / run / "checkpoint-75";  // 25 steps an epoch
  }
  static void expect_same_run(const std::string& a, const std::string& b) {
    EXPECT_EQ(curve_of(a), curve_of(b));
    for (const char* file : {"final/model.safetensors", "predictions.jsonl"})
      EXPECT_EQ(text_of(root_ / a / file), text_of(root_ / b / file)) << b << "/" << file;
    for (const char* file : {"model.safetensors", "state/adam_m.safetensors",
                             "state/adam_v.safetensors", "state/run_state.json"})
      EXPECT_EQ(text_of(last_checkpoint(a) / file), text_of(last_checkpoint(b) / file))
          << b << "/" << file;
  }

  static inline fs::path root_;
};

/** Where bytes live and who updates them, none of which may show. */
std::vector<std::string> random_placement(std::mt19937& random) {
  const char* placements[] = {"resident", "host"};
  const char* activations[] = {"keep", "recompute", "host"};
  const char* orders[] = {"horizontal", "vertical"};
  return {std::string("--placement=") + placements[random() % 2],
          std::string("--activations=") + activations[random() % 3],
          std::string("--accumulation-order=") + orders[random() % 2],
          "--worker-threads=" + std::to_string(1 + random() % 3),
          std::string("--optimizer-overlap=") + (random() % 2 ? "true" : "false")};
}

TEST_F(Resume, KilledAtRandomMomentsTheSameBits) {
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(ferry(new_run("whole")).code(), 0) << text_of(root_ / "err");
  const auto whole_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::steady_clock::now() - start)
                            .count();
  const int n_kills_wanted = is_long() ? 200 : 20;
  std::mt19937 random(7);
  int n_kills = 0;
  for (int round = 0; n_kills < n_kills_wanted; ++round) {
    const std::string run = "killed" + std::to_string(round);
    Outcome outcome;
    int n_kills_of_run = 0;
    do {
      const auto delay = std::chrono::milliseconds(random() % static_cast<unsigned>(whole_ms));
      outcome = n_kills_of_run < 12 ? ferry_killed_after(go_on(run, random_placement(random)), delay)
                                    : ferry(go_on(run, random_placement(random)));
      n_kills += outcome.was_killed();
      n_kills_of_run += outcome.was_killed();
      ASSERT_TRUE(outcome.was_killed() || outcome.code() == 0) << outcome.err;
    } while (outcome.code() != 0);
    expect_same_run("whole", run);
    fs::remove_all(root_ / run);
  }
}

TEST_F(Resume, StoppedBySignalItSavesAndGoesOn) {
  ASSERT_EQ(ferry(new_run("unbroken")).code(), 0) << text_of(root_ / "err");
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string run = "signal" + std::to_string(signal);
    const pid_t child = start(new_run(run, {"--save-steps=1000"}));
    while (text_of(root_ / run / "metrics.jsonl").size() < 300)
      std::this_thread::sleep_for(1ms);
    ::kill(child, signal);
    const Outcome stopped = wait_for(child);
    ASSERT_EQ(stopped.code(), 130) << stopped.err;
    EXPECT_NE(stopped.err.find("--resume"), std::string::npos) << stopped.err;
    EXPECT_EQ(nlohmann::json::parse(text_of(root_ / run / "run.json"))["phase"], "stopped");
    ASSERT_EQ(ferry(go_on(run)).code(), 0) << text_of(root_ / "err");
    expect_same_run("unbroken", run);
  }
}

TEST_F(Resume, InTenPiecesElsewhereEachTimeTheSameBits) {
  ASSERT_EQ(ferry(new_run("one_piece")).code(), 0) << text_of(root_ / "err");
  std::mt19937 random(11);
  constexpr int kPieces = 10, kSteps_per_piece = 7;
  for (int piece = 1; piece < kPieces; ++piece) {
    auto arguments = go_on("pieces", random_placement(random));
    arguments.push_back("--save-strategy=no");  // only on leaving
    const pid_t child = start(arguments);
    const std::string wanted = "\"step\":" + std::to_string(piece * kSteps_per_piece) + ",";
    while (text_of(root_ / "pieces/metrics.jsonl").find(wanted) == std::string::npos)
      std::this_thread::sleep_for(1ms);
    ::kill(child, SIGTERM);
    const Outcome outcome = wait_for(child);
    ASSERT_EQ(outcome.code(), 130) << outcome.err;
  }
  ASSERT_EQ(ferry(go_on("pieces", {"--save-strategy=steps"})).code(), 0) << text_of(root_ / "err");
  expect_same_run("one_piece", "pieces");
}

TEST_F(Resume, DamagedCheckpointsAndOtherIdentities) {
  ASSERT_EQ(ferry(new_run("damaged")).code(), 0) << text_of(root_ / "err");
  fs::remove_all(root_ / "damaged/final");
  const auto expect_fault = [&](const std::vector<std::string>& arguments, int code,
                                const std::string& holds) {
    const Outcome outcome = ferry(arguments);
    EXPECT_EQ(outcome.code(), code) << outcome.err;
    EXPECT_NE(outcome.err.find(holds), std::string::npos) << holds << " in: " << outcome.err;
  };
  expect_fault(go_on("damaged", {"--seed=43"}), 3, "seed");
  expect_fault(go_on("damaged", {"--micro-batch-size=8"}), 3, "per_device_train_batch_size");
  expect_fault(new_run("damaged"), 2, "--resume");
  // The number of threads inside an operation is part of what fixes the bits.
  expect_fault(go_on("damaged", {"--intra-op-threads=2"}), 3, "intra_op_threads");

  for (const char* file : {"model.safetensors", "state/adam_m.safetensors"}) {
    const fs::path path = last_checkpoint("damaged") / file;
    const std::string good = text_of(path);
    std::string bad = good;
    bad[bad.size() - 100] = static_cast<char>(bad[bad.size() - 100] ^ 1);
    std::ofstream(path, std::ios::binary) << bad;
    expect_fault(go_on("damaged"), 4, "CRC-32C");
    fs::remove(path);
    expect_fault(go_on("damaged"), 4, "checkpoint-75");
    std::ofstream(path, std::ios::binary) << good;
  }
  // The one before it is whole.
  EXPECT_EQ(ferry({"train", "--resume=damaged/checkpoint-70"}).code(), 0) << text_of(root_ / "err");
}

}  // namespace
}  // namespace ferry::testing
