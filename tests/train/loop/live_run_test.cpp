// Events during a run: the clock, signals, requests of `ferry runs`, other
// programs that take its memory, evaluations that end it early. It ends in order, and a run that
// was disturbed ends with the bits of one that was not.

#include <sys/resource.h>

#include <functional>
#include <map>
#include <numeric>
#include <random>

#ifdef GPU_EATER
#include "tests/train/gpu_eater.h"
#endif
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using LiveRun = RunTest;

TEST_F(LiveRun, MaxTimeEndsTheRunInOrder) {
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

TEST_F(LiveRun, StoppedBySignalItSavesAndGoesOn) {
  // Long enough that a signal comes before its end on a busy machine, too.
  const std::string long_run = "--epochs=8";
  ASSERT_EQ(ferry(new_run("unbroken", {long_run})).code(), 0) << text_of(root_ / "err");
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string run = "signal" + std::to_string(signal);
    const pid_t child = start(new_run(run, {long_run, "--save-steps=1000"}));
    wait_for_line(run, 1);
    ::kill(child, signal);
    const Outcome stopped = wait_for(child);
    ASSERT_EQ(stopped.code(), 130) << stopped.err;
    EXPECT_NE(stopped.err.find("--resume"), std::string::npos) << stopped.err;
    EXPECT_EQ(nlohmann::json::parse(text_of(root_ / run / "run.json"))["phase"], "stopped");
    ASSERT_EQ(ferry(go_on(run)).code(), 0) << text_of(root_ / "err");
    expect_same_run("unbroken", run);
  }
}

TEST_F(LiveRun, WhatNohupIgnoresStaysIgnored) {
  void (*before)(int) = std::signal(SIGHUP, SIG_IGN);
  const pid_t child = start(new_run("nohup"));
  std::signal(SIGHUP, before);
  wait_for_line("nohup", 3);
  ::kill(child, SIGHUP);
  EXPECT_EQ(wait_for(child).code(), 0) << text_of(root_ / "err");
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

/** Steps of the run's evaluations and what they found. */
std::map<int64_t, double> evaluations_of(const std::string& metrics) {
  std::map<int64_t, double> found;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);)
    if (const auto json = nlohmann::json::parse(line); json.contains("eval_loss"))
      found[json["step"].get<int64_t>()] = json["eval_loss"].get<double>();
  return found;
}

TEST_F(LiveRun, PausedSavedChangedAndStoppedWhileItRuns) {
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
  // The files left of it when the power fails right after the first checkpoint.
  fs::copy(root_ / "changed", root_ / "changed_again", fs::copy_options::recursive);
  fs::remove_all(root_ / "changed_again/final");
  for (const auto& entry : fs::directory_iterator(root_ / "changed_again"))
    if (entry.path().filename().string().starts_with("checkpoint-")) fs::remove_all(entry.path());
  ASSERT_EQ(ferry(go_on("changed_again")).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(curve_of("changed_again"), curve);

  // Evaluated more often from its middle on, with the same training.
  const pid_t watched = start(new_run("watched", {"--eval-strategy=no"}));
  wait_for_line("watched", 5);
  ASSERT_EQ(ask({"set", "watched", "eval_steps=10"}).code(), 0) << text_of(root_ / "ask_err");
  ASSERT_EQ(wait_for(watched).code(), 0);
  EXPECT_EQ(text_of(root_ / "watched/final/model.safetensors"),
            text_of(root_ / "left_alone/final/model.safetensors"));
  const auto found = evaluations_of(text_of(root_ / "watched/metrics.jsonl"));
  ASSERT_GT(found.size(), 2u);
  for (const auto& [step, loss] : found)
    EXPECT_TRUE(step % 10 == 0 || step == found.rbegin()->first) << step << ": " << loss;

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
    EXPECT_EQ(text_of(root_ / "out").find("resumed at step") != std::string::npos, saves);
    expect_same_run("left_alone", run);
  }
}

/** A run holds the memory it needs from the start; memory that it gave back in a pause may be gone,
 * and then it stays paused. */
TEST_F(LiveRun, AnotherProgramTakesTheGpusMemory) {
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

TEST_F(LiveRun, TheBestModelIsKeptAndBecomesTheFinalOne) {
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

TEST_F(LiveRun, EvaluatesAndSavesByTheClock) {
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

TEST_F(LiveRun, StopsEarlyWhenNothingGetsBetter) {
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

TEST_F(LiveRun, AFullDiskInTheMiddleEndsNoTraining) {
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

/** Before the first step there is nothing to save, and measuring may take long. */
TEST_F(LiveRun, ASignalBeforeTheFirstStepLeavesAtOnce) {
  fs::remove(root_ / "err");  // of the test before
  const pid_t child = start(new_run("unbegun", {"--train-batch-size=300", "--micro-batch-size=1"}));
  wait_until([] { return text_of(root_ / "err").find("measuring a step") != std::string::npos; });
  ::kill(child, SIGINT);
  const Outcome outcome = wait_for(child);
  EXPECT_EQ(outcome.code(), 130) << outcome.err;
  EXPECT_NE(outcome.err.find("left before the first step"), std::string::npos) << outcome.err;
  EXPECT_EQ(text_of(root_ / "unbegun/metrics.jsonl"), "");
  EXPECT_EQ(ferry(go_on("unbegun", {"--max-steps=1"})).code(), 0) << text_of(root_ / "err");
}

TEST_F(LiveRun, TheSecondSignalLeavesAtOnce) {
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

}  // namespace
}  // namespace ferry::test
