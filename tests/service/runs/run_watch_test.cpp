// A run watched by its directory: alive, ended, killed, damaged, removed.

#include "src/service/runs/run_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/base/error.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/directory/run_directory.h"
#include "src/service/runs/trainer_process.h"
#include "tests/files/test_files.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using runs::Phase;
using ::testing::HasSubstr;

class WatchedRun : public ::testing::Test {
 protected:
  /** A run that this process trains. */
  void start() { trainer_.emplace(run_); }
  void write_record(const std::string& text) {
    fs::create_directories(run_);
    std::ofstream(run_ / "run.json") << text;
  }

  test::TempDir directory_;
  const fs::path run_ = directory_ / "run";
  RunWatch watch_{run_};
  std::optional<runs::RunDirectory> trainer_;
};

TEST_F(WatchedRun, IsFollowedFromStartToEnd) {
  EXPECT_EQ(watch_.look().phase, "unreadable");
  EXPECT_THAT(watch_.trouble(), HasSubstr("run.json"));
  start();
  trainer_->set_phase(Phase::preparing);
  EXPECT_EQ(watch_.look(), (RunFacts{.phase = "preparing", .trainer = Trainer::here}));
  EXPECT_TRUE(watch_.trouble().empty());
  trainer_->set("control_socket", "/somewhere");
  for (const Phase phase : {Phase::training, Phase::evaluating, Phase::paused, Phase::saving}) {
    trainer_->set_phase(phase);
    EXPECT_EQ(watch_.look(), (RunFacts{.phase = std::string(name_of(phase)),
                                       .trainer = Trainer::here,
                                       .has_socket = true}));
  }
  trainer_->set(runs::kSamplesOnRequest, true);
  EXPECT_TRUE(watch_.look().has_prompts);
  trainer_->set("waits_for", "room on the disk");
  EXPECT_TRUE(watch_.look().waits_for_room);
  {
    runs::NewCheckpoint checkpoint(run_, 7);
    EXPECT_FALSE(watch_.look().has_checkpoint);
    checkpoint.commit();
  }
  EXPECT_TRUE(watch_.look().has_checkpoint);
  trainer_->set_phase(Phase::finished);
  EXPECT_EQ(watch_.look().phase, "finished");
  EXPECT_EQ(watch_.facts().trainer, Trainer::none);
  EXPECT_EQ(watch_.record()["phase"], "finished");
}

TEST_F(WatchedRun, IsLostOrUnstartedWhereItsProcessIsGone) {
  start();
  trainer_->set_phase(Phase::preparing);
  trainer_.reset();
  EXPECT_EQ(watch_.look().phase, "unstarted");
  start();
  trainer_->set_phase(Phase::training, {{"promised", {{"training_seconds", 5}}}});
  EXPECT_EQ(watch_.look().phase, "training");
  trainer_.reset();
  EXPECT_EQ(watch_.look().phase, "lost");
  EXPECT_EQ(watch_.facts().trainer, Trainer::none);
  EXPECT_EQ(watch_.record()["phase"], "training");
  start();  // it goes on
  trainer_->set_phase(Phase::preparing);
  EXPECT_EQ(watch_.look().trainer, Trainer::here);
}

TEST_F(WatchedRun, ThatIsDamagedOrRemovedIsUnreadable) {
  for (const char* text : {"", "{", "[]", R"({"phase": 3})", R"({"format_version": 99})"}) {
    write_record(text);
    EXPECT_EQ(watch_.look().phase, "unreadable") << text;
    EXPECT_FALSE(watch_.trouble().empty());
    EXPECT_EQ(watch_.facts().trainer, Trainer::none);
  }
  write_record(R"({"phase": "stopped", "pid": 1})");
  EXPECT_EQ(watch_.look().phase, "stopped");
  fs::remove_all(run_);
  EXPECT_EQ(watch_.look().phase, "unreadable");
  EXPECT_FALSE(watch_.facts().is_removable);
  EXPECT_TRUE(watch_.record().is_null());
}

TEST_F(WatchedRun, WithADamagedRecordIsNotTakenForFreeWhileItIsLocked) {
  start();
  write_record("{");
  EXPECT_EQ(watch_.look().trainer, Trainer::elsewhere);
  EXPECT_FALSE(allowed_actions(watch_.facts()).allows(RunAction::delete_run));
}

TEST_F(WatchedRun, WithoutAPlaceToWriteSaysSo) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  write_record(R"({"phase": "stopped"})");
  fs::permissions(run_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_FALSE(watch_.look().is_writable);
  EXPECT_FALSE(watch_.facts().is_removable);
  fs::permissions(run_, fs::perms::owner_all);
  EXPECT_TRUE(watch_.look().is_removable);
}

TEST_F(WatchedRun, MayBeForcedAMinuteAfterAStopThatNeitherSavesNorEnds) {
  start();
  trainer_->set_phase(Phase::training);
  const auto begin = RunWatch::Clock::now();
  watch_.look(begin);
  watch_.note_stop(begin);
  EXPECT_FALSE(watch_.look(begin + 59s).is_stop_overdue);
  EXPECT_TRUE(watch_.look(begin + 61s).is_stop_overdue);
  trainer_->set_phase(Phase::saving);
  EXPECT_FALSE(watch_.look(begin + 100s).is_stop_overdue);
  trainer_->set_phase(Phase::training);
  EXPECT_FALSE(watch_.look(begin + 150s).is_stop_overdue);
  EXPECT_TRUE(watch_.look(begin + 161s).is_stop_overdue);
  trainer_->set_phase(Phase::stopped);
  EXPECT_FALSE(watch_.look(begin + 170s).is_stop_overdue);
  trainer_.reset();
  start();
  trainer_->set_phase(Phase::training);
  EXPECT_FALSE(watch_.look(begin + 300s).is_stop_overdue) << "another process, not asked";
}

/** A process of its own that trains until a signal comes. */
pid_t start_trainer(const fs::path& run) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::signal(SIGINT, SIG_DFL);
  runs::RunDirectory directory(run);
  directory.set_phase(Phase::training, {{"promised", nlohmann::ordered_json::object()}});
  while (true)
    ::pause();
}

TEST_F(WatchedRun, IsReachedBySignals) {
  for (const int signal : {SIGINT, SIGKILL}) {
    const pid_t child = start_trainer(run_);
    while (watch_.look().phase != "training" || watch_.record().value("pid", 0) != child)
      std::this_thread::sleep_for(5ms);
    EXPECT_EQ(watch_.facts().trainer, Trainer::here);
    signal == SIGINT ? interrupt_trainer(run_) : kill_trainer(run_);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_EQ(watch_.look().phase, "lost");
    EXPECT_THROW(kill_trainer(run_), Error);
  }
}

TEST_F(WatchedRun, NeverMeansAnotherProcessOfTheNumber) {
  // Its parent lives, and has nothing to do with the run.
  write_record(R"({"phase": "training", "pid": )" + std::to_string(::getppid()) + "}");
  EXPECT_FALSE(find_trainer_process(run_, runs::read_record(run_)));
  EXPECT_THROW(kill_trainer(run_), Error);
  for (const char* pid : {"0", "1", "99999999999", "4194304"}) {
    write_record(std::string(R"({"phase": "training", "pid": )") + pid + "}");
    EXPECT_THROW(interrupt_trainer(run_), Error) << pid;
  }
}

}  // namespace
}  // namespace ferry::service
