// The run directory: what is whole, what goes, what a second process and a torn line meet.

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/base/error.h"
#include "src/base/process/host_memory.h"
#include "src/files/mapped_file.h"
#include "src/files/write/atomic_file.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/index/run_list.h"
#include "src/runs/logs/metrics_log.h"
#include "src/runs/logs/train_log.h"
#include "tests/files/no_memory.h"
#include "tests/files/test_files.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Runs : public ::testing::Test {
 protected:
  Runs() { fs::create_directory(run_); }

  void make_checkpoint(int64_t step, const char* weights = "weights") {
    NewCheckpoint checkpoint(run_, step);
    write_text_file(checkpoint.path() / "model.safetensors", weights);
    checkpoint.commit();
  }
  std::string metrics() const { return test::read_file(run_ / "metrics.jsonl"); }
  std::vector<int64_t> complete_steps() const {
    std::vector<int64_t> steps;
    for (const Checkpoint& checkpoint : complete_checkpoints(run_))
      steps.push_back(checkpoint.step);
    return steps;
  }

  test::TempDir directory_;
  const fs::path run_ = directory_ / "run";
};

TEST_F(Runs, OnlyWholeCheckpointsCount) {
  for (int64_t step : {9, 10, 100})
    make_checkpoint(step);
  {
    NewCheckpoint abandoned(run_, 120);
    write_text_file(abandoned.path() / "model.safetensors", "half");
  }
  EXPECT_FALSE(fs::exists(run_ / "checkpoint-120.tmp")) << "what is not committed goes";
  fs::create_directories(run_ / "checkpoint-200.tmp");  // killed while filling
  fs::create_directories(run_ / "checkpoint-150");      // killed before COMPLETE
  fs::create_directories(run_ / "checkpoint-x");
  EXPECT_THAT(complete_steps(), ElementsAre(9, 10, 100));
  remove_oldest(run_, 2);
  EXPECT_THAT(complete_steps(), ElementsAre(10, 100));
  EXPECT_FALSE(fs::exists(run_ / "checkpoint-9"));
  make_checkpoint(150);  // the run comes by again
  EXPECT_EQ(complete_checkpoints(run_).back().step, 150);
}

TEST_F(Runs, ACheckpointThatGoesWhileItIsCheckedIsNotDamaged) {
  make_checkpoint(10);
  const fs::path checkpoint = run_ / "checkpoint-10";
  EXPECT_THROW(check_checkpoint(checkpoint), Error) << "complete, and has no checksums";
  fs::remove(checkpoint / "COMPLETE");
  EXPECT_FALSE(check_checkpoint(checkpoint)) << "half removed";
  fs::remove_all(checkpoint);
  EXPECT_FALSE(check_checkpoint(checkpoint));
}

TEST_F(Runs, WhatARunWentBackFromIsReplaced) {
  for (int64_t step : {5, 10, 15})
    make_checkpoint(step);
  make_checkpoint(10, "other weights");
  EXPECT_EQ(test::read_file(run_ / "checkpoint-10/model.safetensors"), "other weights");
  EXPECT_FALSE(fs::exists(run_ / "checkpoint-10.tmp"));
  EXPECT_THAT(put_aside_later(run_, 10), ElementsAre("checkpoint-15.left"));
  EXPECT_THAT(complete_steps(), ElementsAre(5, 10));
  EXPECT_TRUE(fs::exists(run_ / "checkpoint-15.left/model.safetensors"));
}

TEST_F(Runs, ResumePointNamesTheLastCompleteOne) {
  EXPECT_THAT(error_of([&] { find_resume_point(run_); }), HasSubstr("config.toml"));
  write_text_file(run_ / "config.toml", "");
  EXPECT_FALSE(find_resume_point(run_).checkpoint) << "stopped before its first checkpoint";
  make_checkpoint(5);
  make_checkpoint(7);
  EXPECT_EQ(find_resume_point(run_).checkpoint->step, 7);
  EXPECT_EQ(find_resume_point(run_ / "checkpoint-5/").checkpoint->step, 5);
  fs::remove(run_ / "checkpoint-7/COMPLETE");
  EXPECT_EQ(find_resume_point(run_).checkpoint->step, 5);
  const std::string said = error_of([&] { find_resume_point(run_ / "checkpoint-7"); });
  EXPECT_THAT(said, HasSubstr("checkpoint-5"));
  error_of([&] { find_resume_point(run_ / "nowhere"); });
}

TEST_F(Runs, MetricsAreCutWhereTheRunGoesOn) {
  {
    MetricsLog log(run_, 0);
    for (int step = 1; step <= 5; ++step)
      log.append({{"step", step}, {"loss", 1.0 / step}, {"num_input_tokens_seen", step * 10}});
    log.append({{"step", 5}, {"eval_loss", std::nan("")}});
  }
  EXPECT_THAT(metrics(), HasSubstr(R"({"step":5,"eval_loss":null,"nonfinite":true,)"));
  std::ofstream(run_ / "metrics.jsonl", std::ios::app) << R"({"step":6,"lo)";  // torn by a kill
  MetricsLog log(run_, 3);
  EXPECT_EQ(log.losses(), (std::vector<double>{1.0, 1.0 / 2, 1.0 / 3}));
  EXPECT_EQ(log.n_tokens(), 30);
  log.append({{"step", 4}, {"loss", 0.5}, {"num_input_tokens_seen", 44}});
  EXPECT_EQ(log.losses().size(), 4u);
  const std::string text = metrics();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
  EXPECT_EQ(text.find("torn"), std::string::npos);
}

/** As if it had never stopped: from the step of the last line with a mean. */
TEST_F(Runs, TheMeanLossGoesOnWhereItWas) {
  const auto step = [](MetricsLog& log, int64_t n, double loss, bool is_line) {
    nlohmann::ordered_json line = {{"step", n}, {"loss", loss}};
    if (is_line) line["loss_mean"] = log.mean_loss_with(loss);
    log.append(line);
  };
  {
    MetricsLog log(run_, 0);
    EXPECT_TRUE(std::isnan(log.mean_loss_with(std::nan(""))));
    step(log, 1, 4, false);
    EXPECT_EQ(log.mean_loss_with(2), 3);
    step(log, 2, 2, true);
    EXPECT_EQ(log.mean_loss_with(9), 9) << "the line begins anew";
    step(log, 3, std::nan(""), false);  // a skipped step of fp16
    step(log, 4, 5, false);
    step(log, 5, 100, false);
  }
  MetricsLog resumed(run_, 4);
  EXPECT_EQ(resumed.mean_loss_with(7), 6);
  std::ofstream(run_ / "run.json") << R"({"phase": "finished"})";
  EXPECT_EQ(summarise(run_).mean_loss, 5);
}

TEST_F(Runs, MetricsWaitForRoomOnAFullDisk) {
  MetricsLog log(run_, 0);
  log.append({{"step", 1}, {"loss", 1.0}});
  {
    const ferry::test::FileSizeLimit limit(metrics().size() + 10);
    for (int step = 2; step <= 4; ++step)
      log.append({{"step", step}, {"loss", 1.0}});
    EXPECT_TRUE(log.take_failure().has_value());
    EXPECT_FALSE(log.take_failure().has_value()) << "it is said once";
    error_of([&] { log.sync(); }, Fault::machine);
  }
  log.append({{"step", 5}, {"loss", 1.0}});
  log.sync();
  EXPECT_EQ(MetricsLog(run_, 9).losses().size(), 5u) << metrics();
}

TEST_F(Runs, MetricsGoToTensorBoardOnRequestOnly) {
  { MetricsLog log(run_, 0); }
  EXPECT_FALSE(fs::exists(run_ / "tensorboard"));
  {
    MetricsLog log(run_, 0, /*with_tensorboard=*/true);
    log.append({{"step", 1}, {"loss", 1.0}, {"step_ms", 5.0}, {"skipped", true}});
    log.append({{"step", 1}, {"save_seconds", 2.0}});
    log.append({{"step", 1}, {"eval_f1", 0.5}, {"eval_name", "dev"}});
  }
  std::string text;
  for (const auto& entry : fs::directory_iterator(run_ / "tensorboard"))
    text += test::read_file(entry.path());
  for (const char* tag : {"train/loss", "eval/f1"})
    EXPECT_THAT(text, HasSubstr(tag));
  for (const char* key : {"step_ms", "skipped", "save_seconds", "eval/name"})
    EXPECT_EQ(text.find(key), std::string::npos) << key;
}

/** A step's line, so much of nothing as a sparse file has, and another step's line. */
void write_metrics_with_hole(const fs::path& file, int64_t hole_bytes) {
  std::ofstream(file) << R"({"step":1,"loss":0.5,"step_ms":250})" << '\n';
  fs::resize_file(file, fs::file_size(file) + static_cast<size_t>(hole_bytes));
  std::ofstream(file, std::ios::app) << '\n' << R"({"step":2,"loss":0.25,"step_ms":250})" << '\n';
}

TEST_F(Runs, MetricsOfATerabyteAreRefusedAndOtherRunsListed) {
  ::setenv("XDG_DATA_HOME", (run_ / "data").c_str(), 1);  // an index of runs of its own
  for (const char* name : {"good", "huge"}) {
    fs::create_directory(run_ / name);
    write_text_file(run_ / name / "run.json", R"({"phase": "finished"})");
  }
  write_metrics_with_hole(run_ / "huge/metrics.jsonl", int64_t{1} << 40);
  const std::string said = error_of([&] { summarise(run_ / "huge"); });
  EXPECT_THAT(said, HasSubstr("huge/metrics.jsonl' has 1024.00 GiB"));
  const std::vector<RunSummary> all = list_runs(run_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name(), "good");
}

TEST_F(Runs, MetricsWithALongLineTakeNoMemory) {
  constexpr int64_t kHole_bytes = 256 << 20;
  write_text_file(run_ / "run.json", R"({"phase": "finished"})");
  write_metrics_with_hole(run_ / "metrics.jsonl", kHole_bytes);
  const int64_t before_bytes = process_status_bytes("VmHWM");
  const RunSummary run = summarise(run_);
  EXPECT_LT(process_status_bytes("VmHWM") - before_bytes, kHole_bytes / 4);
  EXPECT_EQ((*run.last_step)["step"], 2);
  EXPECT_EQ(run.training_seconds, 0.5);
}

TEST_F(Runs, MetricsAreReadInPieces) {
  write_text_file(run_ / "run.json", R"({"phase": "finished"})");
  constexpr int kSteps = 20'000;  // lines over the ends of many pieces
  {
    std::ofstream lines(run_ / "metrics.jsonl");
    for (int step = 1; step <= kSteps; ++step)
      lines << R"({"step":)" << step << R"(,"loss":0.5,"step_ms":125})" << '\n';
    lines << R"({"step":)" << kSteps << R"(,"eval_loss":1})";  // as another program left it
  }
  const RunSummary run = summarise(run_);
  EXPECT_EQ(run.training_seconds, kSteps / 8);
  EXPECT_EQ((*run.last_step)["step"], kSteps);
  EXPECT_EQ((*run.last_evaluation)["eval_loss"], 1);
}

/** Destructors that clean up after a failure run when there is no memory either. */
TEST_F(Runs, WithoutMemoryACheckpointIsGivenUpInOrder) {
  std::optional<NewCheckpoint> checkpoint(std::in_place, run_, 5);
  write_text_file(checkpoint->path() / "model.safetensors", "weights");
  {
    const ferry::test::NoMemory none;
    checkpoint.reset();
  }
  EXPECT_TRUE(complete_checkpoints(run_).empty());
}

TEST_F(Runs, OneProcessTrainsInARun) {
  RunDirectory mine(run_);
  mine.set_phase(Phase::training, {{"seed", 42}});
  EXPECT_EQ(read_run(run_)["phase"], "training");
  EXPECT_EQ(read_run(run_)["seed"], 42);
  const std::string said = error_of([&] { RunDirectory other(run_); }, Fault::usage);
  EXPECT_THAT(said, HasSubstr(std::to_string(getpid())));
}

TEST_F(Runs, AProcessThatIsGoneIsLost) {
  const pid_t child = fork();
  if (child == 0) {
    RunDirectory run(run_);
    run.set_phase(Phase::training);
    write_text_file(run_ / "config.toml", "");
    std::ofstream(run_ / ".config.toml.tmp-77-0") << "half";
    fs::create_directories(run_ / "state");
    std::ofstream(run_ / "state/.drive_states.json.tmp-77-0") << "half";
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(read_run(run_)["phase"], "lost");
  RunDirectory again(run_);
  EXPECT_FALSE(fs::exists(run_ / ".config.toml.tmp-77-0")) << "what it left half-written goes";
  EXPECT_TRUE(fs::is_empty(run_ / "state"));
  again.set_phase(Phase::finished);
  EXPECT_EQ(read_run(run_)["phase"], "finished");
}

TEST_F(Runs, OneThatHadNotBegunIsNotLost) {
  const auto phase_of = [&](const char* record) {
    std::ofstream(run_ / "run.json") << record;
    return read_run(run_).value("phase", "");
  };
  EXPECT_EQ(phase_of(R"({"phase": "preparing"})"), "unstarted");
  EXPECT_EQ(phase_of(R"({"phase": "failed"})"), "failed");
  EXPECT_EQ(phase_of(R"({"phase": "training", "promised": {}})"), "lost");
  // It had been resumed: it has steps.
  EXPECT_EQ(phase_of(R"({"phase": "preparing", "promised": {}})"), "lost");
}

TEST_F(Runs, ADirectoryThatWasMovedOrRemovedIsToldAtTheNextLine) {
  RunDirectory run(run_);
  run.set_phase(Phase::training);
  MetricsLog log(run_, 0);
  log.append({{"step", 1}, {"loss", 1.0}});
  make_checkpoint(1);
  const fs::path elsewhere = directory_ / "elsewhere";
  fs::rename(run_, elsewhere);
  const auto append = [&] { log.append({{"step", 2}, {"loss", 1.0}}); };
  for (const std::function<void()>& write :
       {std::function<void()>(append), {[&] { run.set_phase(Phase::evaluating); }}}) {
    const std::string said = error_of(write, Fault::machine);
    EXPECT_THAT(said, HasSubstr("moved to '" + elsewhere.string()));
    EXPECT_THAT(said, HasSubstr("checkpoint-1'"));
    EXPECT_THAT(said, HasSubstr("--resume"));
  }
  EXPECT_FALSE(fs::exists(run_)) << "nothing comes back where it was";
  fs::remove_all(elsewhere);
  EXPECT_THAT(error_of(append, Fault::machine), HasSubstr("was removed"));
  error_of([&] { NewCheckpoint checkpoint(run_, 2); }, Fault::machine);
  EXPECT_FALSE(fs::exists(run_));
}

TEST_F(Runs, WhatKilledProcessesLeftOfCheckpointsGoes) {
  make_checkpoint(5);
  for (const char* name : {"checkpoint-7.tmp", "checkpoint-6", "checkpoint-x.tmp", "final"})
    write_text_file((fs::create_directories(run_ / name), run_ / name / "weights"), "half");
  { RunDirectory run(run_); }
  EXPECT_TRUE(fs::exists(run_ / "checkpoint-5/COMPLETE"));
  EXPECT_FALSE(fs::exists(run_ / "checkpoint-6")) << "removed by half";
  EXPECT_FALSE(fs::exists(run_ / "checkpoint-7.tmp")) << "written by half";
  EXPECT_TRUE(fs::exists(run_ / "checkpoint-x.tmp")) << "not ours";
  EXPECT_TRUE(fs::exists(run_ / "final"));
}

/** Killed between two renames, on a file system that cannot swap. */
TEST_F(Runs, AReplacementThatWasInterruptedIsFinished) {
  make_checkpoint(5);
  fs::rename(run_ / "checkpoint-5", run_ / "checkpoint-5.tmp.old");
  write_text_file(run_ / "checkpoint-5.tmp.old" / "model.safetensors", "the older ones");
  fs::create_directory(run_ / "checkpoint-5.tmp");
  write_text_file(run_ / "checkpoint-5.tmp" / "model.safetensors", "the newer ones");
  write_text_file(run_ / "checkpoint-5.tmp" / "COMPLETE", "5\n");
  fs::create_directory(run_ / "checkpoint-5.old");  // a user's own
  remove_unfinished(run_);
  EXPECT_THAT(complete_steps(), ElementsAre(5));
  EXPECT_EQ(read_text_file(run_ / "checkpoint-5" / "model.safetensors"), "the newer ones");
  EXPECT_FALSE(fs::exists(run_ / "checkpoint-5.tmp.old"));
  EXPECT_FALSE(fs::exists(run_ / "checkpoint-5.tmp"));
  EXPECT_TRUE(fs::exists(run_ / "checkpoint-5.old"));
}

TEST_F(Runs, ARecordOfANewerFerryNamesBothVersions) {
  { RunDirectory(run_).set_phase(Phase::training); }
  auto record = nlohmann::json::parse(std::ifstream(run_ / "run.json"));
  const std::string here = record["ferry_version"];
  record["format_version"] = 77;
  record["ferry_version"] = "99.1";
  write_text_file(run_ / "run.json", record.dump());
  for (const auto& read : std::vector<std::function<void()>>{[&] { read_run(run_); },
                                                             [&] { RunDirectory again(run_); }}) {
    const std::string said = error_of(read);
    for (const std::string& part : {std::string("99.1"), std::string("77"), here})
      EXPECT_THAT(said, HasSubstr(part));
  }
  write_text_file(run_ / "run.json", R"({"phase": "finished"})");  // an older one has no version
  EXPECT_EQ(read_run(run_)["phase"], "finished");
}

/** A run that somebody else made may have links in it, to any file of the user. */
TEST_F(Runs, HasNoLinksWhereItWrites) {
  const fs::path other = directory_ / "other";
  fs::create_directories(other);
  write_text_file(other / "thesis.txt", "a thesis\n");
  write_text_file(other / "step-000099.jsonl", "mine\n");
  write_text_file(other / "COMPLETE", "mine\n");
  RunDirectory(run_).set_phase(Phase::stopped);
  const auto refusal = [&](const char* name, const fs::path& target) {
    fs::create_symlink(target, run_ / name);
    const std::string what = error_of([&] { RunDirectory{run_}; });
    fs::remove(run_ / name);
    return what;
  };
  for (const char* name : {"metrics.jsonl", "train.log", "config.toml", "predictions.jsonl"})
    EXPECT_THAT(refusal(name, other / "thesis.txt"),
                StartsWith("[files.write] '" + (run_ / name).string()));
  for (const char* name : {"samples", "tensorboard", "state", "final", "checkpoint-1"})
    EXPECT_THAT(refusal(name, other), HasSubstr("is a link to")) << name;
  for (const char* name : {"samples", "tensorboard", "checkpoint-2"}) {
    fs::create_directories(run_ / name);
    EXPECT_THAT(refusal((std::string(name) + "/x").c_str(), other / "thesis.txt"),
                HasSubstr("/x' is a"));
    fs::remove_all(run_ / name);
  }
  // Each writer by itself, for links that come later.
  fs::create_symlink(other / "thesis.txt", run_ / "metrics.jsonl");
  fs::create_symlink(other / "thesis.txt", run_ / kTrainLogName);
  fs::create_symlink(other, run_ / "checkpoint-1");
  error_of([&] { MetricsLog(run_, 0, false); });
  TrainLog(run_, {}).add("a line");
  remove_checkpoint(run_ / "checkpoint-1");
  EXPECT_EQ(read_text_file(other / "thesis.txt"), "a thesis\n");
  EXPECT_TRUE(fs::exists(other / "step-000099.jsonl") && fs::exists(other / "COMPLETE"));
}

TEST_F(Runs, ListsTheNewestOfVeryMany) {
  const auto now = fs::file_time_type::clock::now();
  for (size_t i = 0; i <= kListed_max; ++i) {
    const fs::path file = run_ / std::to_string(i) / "run.json";
    fs::create_directories(file.parent_path());
    std::ofstream(file) << R"({"phase": "finished"})";
    fs::last_write_time(file, now + std::chrono::seconds(i));
  }
  const std::vector<RunSummary> all = list_runs(run_);
  EXPECT_EQ(all.size(), kListed_max);
  EXPECT_TRUE(std::ranges::none_of(all, [](const RunSummary& run) { return run.name() == "0"; }));
}

}  // namespace
}  // namespace ferry::runs
