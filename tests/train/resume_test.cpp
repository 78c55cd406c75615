// Promise 2 of the design under kill -9: a run that is killed at random moments and resumed, at
// other places and thread counts, ends with the bits of one that never stopped. A seeded sample
// here; FERRY_LONG=1: all.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#ifdef GPU_EATER
#include "tests/train/gpu_eater.h"
#endif
#include "tests/train/start_ferry.h"
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
  static Outcome ferry(const std::vector<std::string>& arguments, const std::string& prefix = "") {
    return wait_for(start(arguments, prefix), prefix);
  }
  /** Until the run has taken so many steps. */
  static void wait_for_line(const std::string& run, int step) {
    const std::string wanted = "\"step\":" + std::to_string(step) + ",";
    while (text_of(root_ / run / "metrics.jsonl").find(wanted) == std::string::npos)
      std::this_thread::sleep_for(1ms);
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
  const char* boundaries[] = {"gpu", "host"};
  const char* orders[] = {"horizontal", "vertical"};
  return {std::string("--placement=") + placements[random() % 2],
          std::string("--activations=") + activations[random() % 3],
          std::string("--boundaries=") + boundaries[random() % 2],
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
  const int n_kills_wanted = device() == "cuda" ? 40 : is_long() ? 200 : 20;
  std::mt19937 random(7);
  int n_kills = 0;
  for (int round = 0; n_kills < n_kills_wanted; ++round) {
    const std::string run = "killed" + std::to_string(round);
    Outcome outcome;
    int n_kills_of_run = 0;
    do {
      const auto delay = std::chrono::milliseconds(random() % static_cast<unsigned>(whole_ms));
      outcome = n_kills_of_run < 12
                    ? ferry_killed_after(go_on(run, random_placement(random)), delay)
                    : ferry(go_on(run, random_placement(random)));
      n_kills += outcome.was_killed();
      n_kills_of_run += outcome.was_killed();
      ASSERT_TRUE(outcome.was_killed() || outcome.code() == 0) << outcome.err;
    } while (outcome.code() != 0);
    expect_same_run("whole", run);
    fs::remove_all(root_ / run);
  }
}

/** The freedom to place frozen blocks, and rates and decays of their own, survive kills too. */
TEST_F(Resume, FrozenAndGroupedTheSameBits) {
  const std::vector<std::string> options = {
      "--freeze=bert.embeddings.*,bert.encoder.layer.0.*",
      "--param-groups=classifier.*:lr=1e-2,decay=0.1;*.LayerNorm.*:factor=0.5",
      "--layerwise-lr-decay=0.9", "--weight-decay=0.01"};
  ASSERT_EQ(ferry(new_run("frozen", options)).code(), 0) << text_of(root_ / "err");
  const std::string states = text_of(last_checkpoint("frozen") / "state/adam_m.safetensors");
  EXPECT_EQ(states.find("embeddings"), std::string::npos) << "no states of what is frozen";
  EXPECT_NE(states.find("layer.1"), std::string::npos);
  std::mt19937 random(5);
  for (int step : {3, 20, 40}) {
    auto arguments = go_on("frozen_killed", random_placement(random));
    if (step == 3) arguments.insert(arguments.end(), options.begin(), options.end());
    const pid_t child = start(arguments);
    wait_for_line("frozen_killed", step);
    ::kill(child, SIGKILL);
    wait_for(child);
  }
  ASSERT_EQ(ferry(go_on("frozen_killed", random_placement(random))).code(), 0)
      << text_of(root_ / "err");
  expect_same_run("frozen", "frozen_killed");

  // Thawed in the middle its Adam states would be of another step than the run's.
  fs::remove_all(root_ / "frozen_killed/final");
  for (auto [more, says] :
       {std::pair{"--new-identity=false", "freeze"}, std::pair{"--new-identity=true", "frozen"}}) {
    EXPECT_EQ(ferry({"train", "--resume=frozen_killed/checkpoint-70", "--freeze=", more}).code(),
              3);
    EXPECT_NE(text_of(root_ / "err").find(says), std::string::npos) << text_of(root_ / "err");
  }
  // Gone back with another rate: what it leaves does not come again.
  ASSERT_EQ(ferry({"train", "--resume=frozen_killed/checkpoint-70", "--lr=1e-4"}).code(), 0)
      << text_of(root_ / "err");
  EXPECT_TRUE(fs::exists(root_ / "frozen_killed/checkpoint-75.left"));
  EXPECT_NE(curve_of("frozen_killed"), curve_of("frozen"));
  EXPECT_EQ(ferry({"train", "--resume=frozen_killed", "--epochs=9"}).code(), 2) << "it is finished";
}

/** Killed ten times over, wherever the bytes live. */
TEST_F(Resume, ReducedStatesTheSameBits) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--optim=adamw_8bit", "--master=split", "--dtype=bf16",
                                 "--freeze=bert.embeddings.*"},
        {"--optim=adamw_bf16"}}) {
    const std::string run = "reduced" + std::to_string(options.size()), killed = run + "_killed";
    ASSERT_EQ(ferry(new_run(run, options)).code(), 0) << text_of(root_ / "err");
    std::mt19937 random(5);
    for (int step = 2; step <= 65; step += 7) {
      auto arguments = go_on(killed, random_placement(random));
      if (step == 2) arguments.insert(arguments.end(), options.begin(), options.end());
      const pid_t child = start(arguments);
      wait_for_line(killed, step);
      ::kill(child, SIGKILL);
      wait_for(child);
    }
    ASSERT_EQ(ferry(go_on(killed, random_placement(random))).code(), 0) << text_of(root_ / "err");
    expect_same_run(run, killed);
  }
  // The states of one kind are not those of another.
  fs::remove_all(root_ / "reduced1/final");
  const auto resumed_as = [](const char* optim, const char* identity) {
    return ferry({"train", "--resume=reduced1", std::string("--optim=") + optim, identity});
  };
  for (const char* identity : {"--new-identity=false", "--new-identity=true"})
    for (const char* optim : {"adamw", "adamw_8bit"}) {
      const Outcome other = resumed_as(optim, identity);
      EXPECT_EQ(other.code(), 3) << other.err;
      EXPECT_NE(other.err.find("those of optim = adamw_bf16"), std::string::npos) << other.err;
      EXPECT_NE(other.err.find("--model"), std::string::npos) << other.err;
      EXPECT_EQ(other.err.find("new-identity"), std::string::npos) << "it does not help";
    }
}

TEST_F(Resume, MaxTimeEndsTheRunInOrder) {
  constexpr double kMost_ms = 1000;
  const auto step_times = [](const std::string& run) {
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    std::vector<double> times_ms;
    for (std::string line; std::getline(lines, line);)
      if (const auto json = nlohmann::json::parse(line); json.contains("step_ms"))
        times_ms.push_back(json["step_ms"]);
    return times_ms;
  };
  const std::vector<std::string> options = {"--max-time=1s", "--epochs=100000",
                                            "--save-strategy=no"};
  // In two pieces: the time of both counts.
  const pid_t child = start(new_run("timed", options));
  wait_for_line("timed", 5);
  ::kill(child, SIGTERM);
  ASSERT_EQ(wait_for(child).code(), 130);
  ASSERT_GE(step_times("timed").size(), 5u);
  const Outcome outcome = ferry(go_on("timed", {"--save-strategy=steps"}));
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_NE(outcome.err.find("max_time"), std::string::npos) << outcome.err;
  const std::vector<double> times_ms = step_times("timed");
  const double all_ms = std::accumulate(times_ms.begin(), times_ms.end(), 0.0);
  EXPECT_GE(all_ms, kMost_ms);
  EXPECT_LT(all_ms - times_ms.back(), kMost_ms) << "one step too many";
  const std::string last = std::to_string(times_ms.size());
  EXPECT_TRUE(fs::exists(root_ / "timed/final/model.safetensors"));
  EXPECT_TRUE(fs::exists(root_ / "timed" / ("checkpoint-" + last) / "COMPLETE"));
  EXPECT_EQ(text_of(root_ / "timed" / ("checkpoint-" + last) / "model.safetensors"),
            text_of(root_ / "timed/final/model.safetensors"));
  EXPECT_EQ(nlohmann::json::parse(text_of(root_ / "timed/run.json"))["phase"], "finished");
  EXPECT_NE(curve_of("timed").find("eval_loss"), std::string::npos);
}

TEST_F(Resume, StoppedBySignalItSavesAndGoesOn) {
  ASSERT_EQ(ferry(new_run("unbroken")).code(), 0) << text_of(root_ / "err");
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string run = "signal" + std::to_string(signal);
    const pid_t child = start(new_run(run, {"--save-steps=1000"}));
    wait_for_line(run, 3);
    ::kill(child, signal);
    const Outcome stopped = wait_for(child);
    ASSERT_EQ(stopped.code(), 130) << stopped.err;
    EXPECT_NE(stopped.err.find("--resume"), std::string::npos) << stopped.err;
    EXPECT_EQ(nlohmann::json::parse(text_of(root_ / run / "run.json"))["phase"], "stopped");
    ASSERT_EQ(ferry(go_on(run)).code(), 0) << text_of(root_ / "err");
    expect_same_run("unbroken", run);
  }
}

TEST_F(Resume, WhatNohupIgnoresStaysIgnored) {
  void (*before)(int) = std::signal(SIGHUP, SIG_IGN);
  const pid_t child = start(new_run("nohup"));
  std::signal(SIGHUP, before);
  wait_for_line("nohup", 3);
  ::kill(child, SIGHUP);
  EXPECT_EQ(wait_for(child).code(), 0) << text_of(root_ / "err");
}

TEST_F(Resume, InTenPiecesElsewhereEachTimeTheSameBits) {
  ASSERT_EQ(ferry(new_run("one_piece")).code(), 0) << text_of(root_ / "err");
  std::mt19937 random(11);
  constexpr int kPieces = 10, kSteps_per_piece = 7;
  for (int piece = 1; piece < kPieces; ++piece) {
    auto arguments = go_on("pieces", random_placement(random));
    arguments.push_back("--save-strategy=no");  // only on leaving
    const pid_t child = start(arguments);
    wait_for_line("pieces", piece * kSteps_per_piece);
    ::kill(child, SIGTERM);
    const Outcome outcome = wait_for(child);
    ASSERT_EQ(outcome.code(), 130) << outcome.err;
  }
  ASSERT_EQ(ferry(go_on("pieces", {"--save-strategy=steps"})).code(), 0) << text_of(root_ / "err");
  expect_same_run("one_piece", "pieces");
}

/** `ferry runs ...` on a run, once its process listens. */
Outcome ask_of(const std::function<Outcome(const std::vector<std::string>&)>& ferry,
               std::vector<std::string> words) {
  words.insert(words.begin(), "runs");
  Outcome outcome;
  do {
    outcome = ferry(words);  // 5: not listening yet
  } while (outcome.code() == 5 && outcome.err.find("yet") != std::string::npos);
  return outcome;
}

TEST_F(Resume, PausedSavedChangedAndStoppedWhileItRuns) {
  ASSERT_EQ(ferry(new_run("left_alone")).code(), 0) << text_of(root_ / "err");
  const auto ask = [](std::vector<std::string> words) {
    return ask_of([](const auto& all) { return ferry(all, "ask_"); }, std::move(words));
  };
  // Paused and saved, with the same bits.
  const pid_t steered = start(new_run("steered"));
  wait_for_line("steered", 5);
  EXPECT_EQ(ask({"pause", "steered"}).code(), 0) << text_of(root_ / "ask_err");
  EXPECT_EQ(nlohmann::json::parse(text_of(root_ / "steered/run.json"))["phase"], "paused");
  const std::string lines = text_of(root_ / "steered/metrics.jsonl");
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(text_of(root_ / "steered/metrics.jsonl"), lines) << "a paused run takes no steps";
  EXPECT_EQ(ask({"set", "steered", "seed=3"}).code(), 2);
  EXPECT_EQ(ask({"set", "steered", "lr=7"}).code(), 2);
  EXPECT_EQ(ask({"save", "steered"}).code(), 0) << "a checkpoint needs no step";
  EXPECT_EQ(nlohmann::json::parse(text_of(root_ / "steered/run.json"))["phase"], "paused");
  EXPECT_EQ(text_of(root_ / "steered/metrics.jsonl").find("\"step\":40,"), std::string::npos);
  EXPECT_EQ(ask({"resume", "steered"}).code(), 0);
  EXPECT_EQ(ask({"save", "steered"}).code(), 0);
  EXPECT_NE(text_of(root_ / "ask_out").find("is complete"), std::string::npos);
  EXPECT_EQ(ask({"check", "steered"}).code(), 0);
  EXPECT_EQ(wait_for(steered).code(), 0);
  EXPECT_EQ(ask({"pause", "steered"}).code(), 2) << "it has finished";
  expect_same_run("left_alone", "steered");

  // Changed in its middle, and killed after that: the change comes again at its step.
  const pid_t changed = start(new_run("changed"));
  wait_for_line("changed", 5);
  ASSERT_EQ(ask({"pause", "changed"}).code(), 0);
  ASSERT_EQ(ask({"set", "changed", "lr=1e-3"}).code(), 0) << text_of(root_ / "ask_err");
  ASSERT_EQ(ask({"resume", "changed"}).code(), 0);
  ASSERT_EQ(wait_for(changed).code(), 0);
  EXPECT_NE(curve_of("changed"), curve_of("left_alone"));
  const auto changes = nlohmann::json::parse(text_of(root_ / "changed/run.json"))["changes"];
  ASSERT_EQ(changes.size(), 1u);
  const std::string curve = curve_of("changed");
  // What is left of it when the power fails right after the first checkpoint.
  fs::copy(root_ / "changed", root_ / "changed_again", fs::copy_options::recursive);
  fs::remove_all(root_ / "changed_again/final");
  for (const auto& entry : fs::directory_iterator(root_ / "changed_again"))
    if (entry.path().filename().string().starts_with("checkpoint-")) fs::remove_all(entry.path());
  ASSERT_EQ(ferry(go_on("changed_again")).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(curve_of("changed_again"), curve);

  // Stopped, with and without a checkpoint.
  for (bool saves : {true, false}) {
    const std::string run = saves ? "stopped" : "stopped_unsaved";
    const pid_t child = start(new_run(run, {"--save-strategy=no"}));
    wait_for_line(run, 5);
    std::vector<std::string> words = {"stop", run};
    if (!saves) words.push_back("--no-save");
    EXPECT_EQ(ask(words).code(), 0) << text_of(root_ / "ask_err");
    EXPECT_EQ(wait_for(child).code(), 130);
    EXPECT_EQ(text_of(root_ / "out").find("resumed"), std::string::npos);
    ASSERT_EQ(ferry(go_on(run, {"--save-strategy=steps"})).code(), 0) << text_of(root_ / "err");
    EXPECT_EQ(text_of(root_ / "out").find("resumed from") != std::string::npos, saves);
    expect_same_run("left_alone", run);
  }
}

/** Steps of the run's evaluations and what they found. */
std::map<int64_t, double> evaluations_of(const std::string& metrics) {
  std::map<int64_t, double> found;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);)
    if (const auto json = nlohmann::json::parse(line); json.contains("eval_loss"))
      found[json["step"].get<int64_t>()] = json["eval_loss"].get<double>();
  return found;
}

/** What a run needs it holds from the start; what it gave back in a pause may be gone, and then it
 * stays paused. */
TEST_F(Resume, AnotherProgramTakesTheGpusMemory) {
#ifdef GPU_EATER
  if (device() != "cuda") GTEST_SKIP() << "needs a GPU: FERRY_TEST_DEVICE=cuda";
  const std::vector<std::string> more = {"--epochs=120", "--save-strategy=no",
                                         "--eval-strategy=steps", "--eval-steps=600"};
  ASSERT_EQ(ferry(new_run("undisturbed", more)).code(), 0) << text_of(root_ / "err");
  const auto ask = [](std::vector<std::string> words) {
    return ask_of([](const auto& all) { return ferry(all, "ask_"); }, std::move(words));
  };
  constexpr long long kLittle_bytes = 1LL << 28;
  const auto phase = [] {
    return nlohmann::json::parse(text_of(root_ / "disturbed/run.json"))["phase"];
  };
  const auto n_steps = [] {
    const std::string lines = text_of(root_ / "disturbed/metrics.jsonl");
    return std::count(lines.begin(), lines.end(), '\n');
  };
  GpuEater eater;
  ASSERT_EQ(eater.free_all(), 0) << "it does not run";

  const pid_t disturbed = start(new_run("disturbed", more));
  wait_for_line("disturbed", 20);
  ASSERT_GT(eater.take_all(), kLittle_bytes);
  ASSERT_LT(n_steps(), 600) << "the first evaluation is to come";
  while (n_steps() < 700 && ::waitpid(disturbed, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(1ms);
  ASSERT_GE(n_steps(), 700) << text_of(root_ / "err");
  ASSERT_EQ(ask({"pause", "disturbed"}).code(), 0) << text_of(root_ / "ask_err");
  EXPECT_EQ(phase(), "paused");
  eater.take_all();  // what the pause gave back

  EXPECT_NE(ask({"resume", "disturbed"}).code(), 0);
  EXPECT_NE(text_of(root_ / "ask_err").find("it stays paused"), std::string::npos)
      << text_of(root_ / "ask_err");
  EXPECT_EQ(phase(), "paused");

  // Nobody starts there now, and everybody is told why.
  const Outcome refused = ferry(new_run("refused", more), "refused_");
  EXPECT_EQ(refused.code(), 5) << refused.err;
  EXPECT_NE(refused.err.find("other programs have taken all memory"), std::string::npos)
      << refused.err;

  ASSERT_EQ(eater.free_all(), 0);
  EXPECT_EQ(ask({"resume", "disturbed"}).code(), 0) << text_of(root_ / "ask_err");
  EXPECT_EQ(wait_for(disturbed).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(curve_of("disturbed"), curve_of("undisturbed"));
  EXPECT_EQ(text_of(root_ / "disturbed/final/model.safetensors"),
            text_of(root_ / "undisturbed/final/model.safetensors"));
#else
  GTEST_SKIP() << "this build has no CUDA";
#endif
}

TEST_F(Resume, TheBestModelIsKeptAndBecomesTheFinalOne) {
  // Steps so long that the last model is not the best.
  const std::vector<std::string> options = {"--eval-strategy=steps", "--eval-steps=5",
                                            "--load-best-model-at-end=true", "--save-total-limit=1",
                                            "--lr=0.05"};
  ASSERT_EQ(ferry(new_run("best", options)).code(), 0) << text_of(root_ / "err");
  const auto found = evaluations_of(text_of(root_ / "best/metrics.jsonl"));
  ASSERT_EQ(found.size(), 15u);
  const auto best =
      std::ranges::min_element(found, {}, [](const auto& evaluation) { return evaluation.second; });
  ASSERT_NE(best->first, 75) << "the last step would be the final model anyhow";
  std::set<std::string> checkpoints;
  for (const auto& entry : fs::directory_iterator(root_ / "best"))
    if (const auto name = entry.path().filename().string(); name.starts_with("checkpoint-"))
      checkpoints.insert(name);
  const std::string of_best = "checkpoint-" + std::to_string(best->first);
  EXPECT_EQ(checkpoints, (std::set<std::string>{of_best, "checkpoint-75"}));
  const std::string final_model = text_of(root_ / "best/final/model.safetensors");
  EXPECT_EQ(final_model, text_of(root_ / "best" / of_best / "model.safetensors"));
  EXPECT_NE(final_model, text_of(root_ / "best/checkpoint-75/model.safetensors"));

  // Killed wherever it may be, the same one is chosen.
  std::mt19937 random(5);
  for (int kill = 0, code = 1; code != 0; ++kill) {
    const auto outcome = kill < 6
                             ? ferry_killed_after(go_on("best_killed", options),
                                                  std::chrono::milliseconds(200 + random() % 2000))
                             : ferry(go_on("best_killed", options));
    ASSERT_TRUE(outcome.was_killed() || outcome.code() == 0) << outcome.err;
    code = outcome.was_killed() ? 1 : 0;
  }
  EXPECT_EQ(curve_of("best_killed"), curve_of("best"));
  EXPECT_EQ(text_of(root_ / "best_killed/final/model.safetensors"), final_model);
  EXPECT_EQ(text_of(root_ / "best_killed/predictions.jsonl"),
            text_of(root_ / "best/predictions.jsonl"));
}

TEST_F(Resume, EvaluatesAndSavesByTheClock) {
  ASSERT_EQ(ferry(new_run("clock", {"--max-time=3s", "--epochs=100000", "--eval-strategy=steps",
                                    "--eval-steps=1s", "--save-steps=1s"}))
                .code(),
            0)
      << text_of(root_ / "err");
  const std::string metrics = text_of(root_ / "clock/metrics.jsonl");
  const auto n_evaluations = evaluations_of(metrics).size();
  EXPECT_GE(n_evaluations, 2u) << "in the middle, and at the end";
  EXPECT_LE(n_evaluations, 20u) << "not at every step";
  size_t n_saves = 0;
  for (size_t at = 0; (at = metrics.find("save_seconds", at)) != metrics.npos; ++at)
    ++n_saves;
  EXPECT_GE(n_saves, 2u);
  EXPECT_LE(n_saves, 20u);
}

TEST_F(Resume, StopsEarlyWhenNothingGetsBetter) {
  const std::vector<std::string> options = {"--eval-strategy=steps", "--eval-steps=4",
                                            "--early-stopping-patience=3",
                                            "--metric-for-best-model=eval_loss", "--lr=0"};
  ASSERT_EQ(ferry(new_run("early", options)).code(), 0) << text_of(root_ / "err");
  EXPECT_NE(text_of(root_ / "err").find("stopping early"), std::string::npos);
  const auto found = evaluations_of(text_of(root_ / "early/metrics.jsonl"));
  EXPECT_EQ(found.rbegin()->first, 16) << "the first, and three that are no better";
  EXPECT_EQ(curve_of("early").find("step17 "), std::string::npos);
  EXPECT_TRUE(fs::exists(root_ / "early/final/model.safetensors"));
  EXPECT_TRUE(fs::exists(root_ / "early/checkpoint-16/COMPLETE"));
  EXPECT_EQ(nlohmann::json::parse(text_of(root_ / "early/run.json"))["phase"], "finished");
  // Killed before the final model was there: it is made, and no step more is taken.
  fs::remove_all(root_ / "early/final");
  ASSERT_EQ(ferry(go_on("early")).code(), 0) << text_of(root_ / "err");
  EXPECT_TRUE(fs::exists(root_ / "early/final/model.safetensors"));
  EXPECT_EQ(curve_of("early").find("step17 "), std::string::npos);
  EXPECT_EQ(
      ferry(new_run("no", {"--metric-for-best-model=bleu", "--early-stopping-patience=1"})).code(),
      2);
  EXPECT_NE(text_of(root_ / "err").find("accuracy"), std::string::npos) << text_of(root_ / "err");
  EXPECT_EQ(ferry(new_run("no", {"--load-best-model-at-end=true", "--eval-strategy=no"})).code(),
            2);
}

TEST_F(Resume, AFullDiskInTheMiddleEndsNoTraining) {
  // Checkpoints do not fit under the limit, lines of metrics do, however long their times are.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 60000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Outcome outcome = ferry(new_run("full", {"--save-steps=20"}));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(outcome.code(), 5) << outcome.err;  // the model cannot be written either
  EXPECT_NE(outcome.err.find("checkpoint-20 could not be written"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("limit on file sizes"), std::string::npos) << outcome.err;
  EXPECT_NE(curve_of("full").find("step75 "), std::string::npos) << "it went on to the last step";
  for (const auto& entry : fs::directory_iterator(root_ / "full"))
    EXPECT_EQ(entry.path().string().find("checkpoint-"), std::string::npos) << entry.path();
  EXPECT_EQ(nlohmann::json::parse(text_of(root_ / "full/run.json"))["phase"], "failed");
  // With room again it goes on from what there is.
  EXPECT_EQ(ferry(go_on("full")).code(), 0) << text_of(root_ / "err");
}

TEST_F(Resume, TheSecondSignalLeavesAtOnce) {
  const pid_t child = start(new_run("twice", {"--save-strategy=no", "--epochs=100000"}));
  wait_for_line("twice", 3);
  ::kill(child, SIGSTOP);  // so that both are there before it can act on the first
  ::kill(child, SIGINT);
  ::kill(child, SIGCONT);
  ::kill(child, SIGTERM);
  const Outcome outcome = wait_for(child);
  EXPECT_EQ(outcome.code(), 130) << outcome.err;
  EXPECT_EQ(ferry(go_on("twice", {"--epochs=1"})).code(), 0) << text_of(root_ / "err");
}

TEST_F(Resume, ASocketOfADeadProcess) {
  const pid_t child = start(new_run("dead"));
  wait_for_line("dead", 3);
  ::kill(child, SIGKILL);
  wait_for(child);
  const Outcome outcome = ferry({"runs", "pause", "dead"});
  EXPECT_EQ(outcome.code(), 2) << outcome.err;
  EXPECT_NE(outcome.err.find("lost"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--resume"), std::string::npos) << outcome.err;
  EXPECT_EQ(ferry(go_on("dead")).code(), 0) << text_of(root_ / "err");
}

TEST_F(Resume, TwoProcessesOnOneRun) {
  const pid_t child = start(new_run("shared", {"--epochs=100000"}));
  wait_for_line("shared", 10);
  const Outcome outcome = ferry({"train", "--resume=shared"}, "ask_");
  EXPECT_EQ(outcome.code(), 2) << outcome.err;
  EXPECT_NE(outcome.err.find(std::to_string(child)), std::string::npos) << outcome.err;
  // It ends while another that was to go on with it prepares: that one finds it as it is then.
  const pid_t late = start({"train", "--resume=shared"}, "late_");
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child).code(), 130);
  // From where it speaks of its data on it takes signals.
  const auto says = [](const char* part) {
    return text_of(root_ / "late_err").find(part) != std::string::npos;
  };
  while (!says("label is column") && !says("ferry: ["))
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(1s);
  ::kill(late, SIGTERM);
  const Outcome later = wait_for(late, "late_");
  EXPECT_TRUE(later.code() == 130 || later.code() == 2) << later.code() << ": " << later.err;
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
