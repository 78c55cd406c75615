#pragma once
// Helpers that tests of whole runs start from: a model and data in a folder of their own, and
// `ferry` as a child process that may be killed, stopped and resumed.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/train/start_ferry.h"
#include "tests/train/tiny_model.h"

namespace ferry::test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

inline bool is_long() {
  const char* text = std::getenv("FERRY_LONG");
  return text && std::string(text) == "1";
}

inline std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct Outcome {
  int status = 0;  // of waitpid
  std::string err;
  bool was_killed() const { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
  int code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }
};

/** Runs of a tiny model by the program itself, each in a folder of `root_`. */
class RunTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = fs::temp_directory_path() / ("ferry_resume_" + std::to_string(getpid()));
    fs::create_directories(root_);
    write_tiny_model(root_ / "model");
    write_tiny_data(root_ / "train.tsv", 200, 1);
    write_tiny_data(root_ / "dev.tsv", 40, 2);
  }
  static void TearDownTestSuite() { fs::remove_all(root_); }

  /** `prefix`: of the files that take its output. */
  static pid_t start(const std::vector<std::string>& arguments, const std::string& prefix = "") {
    return start_ferry(root_, arguments, prefix);
  }
  static Outcome wait_for(pid_t child, const std::string& prefix = "") {
    Outcome outcome;
    waitpid(child, &outcome.status, 0);
    outcome.err = text_of(root_ / (prefix + "err"));
    return outcome;
  }
  static bool has_ended_within(pid_t child, std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    do {
      siginfo_t info{};
      ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid == child) return true;
      std::this_thread::sleep_for(5ms);
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }
  /** As wait_for, but it fails where the process does not end by itself. */
  static Outcome await_end(pid_t child, const std::string& prefix = "") {
    if (has_ended_within(child, 120s)) return wait_for(child, prefix);
    ADD_FAILURE() << "it hangs for ever";
    ::kill(child, SIGKILL);
    return wait_for(child, prefix);
  }
  static Outcome ferry(const std::vector<std::string>& arguments, const std::string& prefix = "") {
    return wait_for(start(arguments, prefix), prefix);
  }
  /** Until `holds()`; a test whose run ended without it fails, and does not wait for ever. */
  template <typename Holds>
  static void wait_until(const Holds& holds) {
    const auto end = std::chrono::steady_clock::now() + 120s;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end)
        throw std::runtime_error("waited for two minutes; the run said: " + text_of(root_ / "err"));
      std::this_thread::sleep_for(1ms);
    }
  }
  /** Until the run has taken so many steps. */
  static void wait_for_line(const std::string& run, int step) {
    const std::string wanted = "\"step\":" + std::to_string(step) + ",";
    wait_until(
        [&] { return text_of(root_ / run / "metrics.jsonl").find(wanted) != std::string::npos; });
  }
  /** The last step that the run's log has. */
  static int last_step(const std::string& run) {
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    int last = 0;
    for (std::string line; std::getline(lines, line);)
      last = std::max(last, nlohmann::json::parse(line).value("step", 0));
    return last;
  }
  /** The processes that another one has started, such as the other ranks of a run. */
  static std::vector<pid_t> children_of(pid_t parent) {
    const std::string pid = std::to_string(parent);
    std::istringstream text(text_of("/proc/" + pid + "/task/" + pid + "/children"));
    std::vector<pid_t> children;
    for (pid_t child = 0; text >> child;)
      children.push_back(child);
    return children;
  }
  static bool is_there(pid_t pid) { return ::kill(pid, 0) == 0; }
  /** A port to meet at, another one each time. Programs do not get it by chance. */
  static std::string port() {
    static int n = 0;
    return std::to_string(20000 + (::getpid() * 16 + ++n) % 12000);
  }
  /** Killed after `delay`, unless it has ended. */
  static Outcome ferry_killed_after(const std::vector<std::string>& arguments,
                                    std::chrono::milliseconds delay) {
    const pid_t child = start(arguments);
    std::this_thread::sleep_for(delay);
    ::kill(child, SIGKILL);
    return wait_for(child);
  }
  /** FERRY_TEST_DEVICE=cuda: the same on a real GPU. */
  static std::string device() {
    const char* text = std::getenv("FERRY_TEST_DEVICE");
    return text ? text : "simulated";
  }
  static std::vector<std::string> new_run(const std::string& run,
                                          std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"train",
                                      "--model=model",
                                      "--dataset=train.tsv",
                                      "--eval-dataset=dev.tsv",
                                      "--device=" + device(),
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
      for (const char* key :
           {"step", "loss", "grad_norm", "learning_rate", "eval_loss", "num_input_tokens_seen"})
        if (json.contains(key)) curve += std::string(key) + json[key].dump() + " ";
      curve += "\n";
    }
    return curve;
  }
  /** Losses of steps and evaluations, one after the other. */
  static std::vector<double> losses_of(const std::string& run) {
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    std::vector<double> losses;
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      for (const char* key : {"loss", "eval_loss"})
        if (json.contains(key)) losses.push_back(json[key]);
    }
    return losses;
  }
  static fs::path last_checkpoint(const std::string& run) {
    return root_ / run / "checkpoint-75";  // 25 steps an epoch
  }
  static void expect_same_run(const std::string& a, const std::string& b) {
    EXPECT_EQ(curve_of(a), curve_of(b));
    for (const char* file : {"final/model.safetensors", "predictions.jsonl"})
      EXPECT_TRUE(text_of(root_ / a / file) == text_of(root_ / b / file)) << b << "/" << file;
    for (const char* file : {"model.safetensors", "state/adam_m.safetensors",
                             "state/adam_v.safetensors", "state/run_state.json"})
      EXPECT_TRUE(text_of(last_checkpoint(a) / file) == text_of(last_checkpoint(b) / file))
          << b << "/" << file;
  }

  static inline fs::path root_;
};

}  // namespace ferry::test
