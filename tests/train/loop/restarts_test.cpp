// Runs that start anew where a process of them dies: each has the bits of a run that nobody killed.

#include <gmock/gmock.h>

#include <random>

#include "src/service/runs/trainer_process.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Restarts : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    ASSERT_EQ(ferry(new_run("one")).code(), 0) << text_of(root_ / "err");
  }
  static nlohmann::json record_of(const std::string& run) {
    return nlohmann::json::parse(text_of(root_ / run / "run.json"));
  }
  /** The process that trains, and writes the run. */
  static pid_t leader_of(const std::string& run) { return record_of(run).value("pid", -1); }
  static void kill_rank(const std::string& run, size_t rank) {
    const pid_t leader = leader_of(run);
    const std::vector<pid_t> others = children_of(leader);
    ASSERT_GT(leader, 1);
    ASSERT_TRUE(rank == 0 || rank <= others.size()) << rank << " of " << others.size();
    ::kill(rank == 0 ? leader : others[rank - 1], SIGKILL);
  }
};

TEST_F(Restarts, HaveTheBitsOfARunThatNobodyKilled) {
  std::mt19937 random(std::random_device{}());
  const size_t second = random() % 3;
  const pid_t started = start(new_run("killed", {"--gpus=3", "--max-restarts=2", "--json"}));
  wait_for_line("killed", 12);
  kill_rank("killed", 0);
  wait_until([] { return record_of("killed").contains("restarts"); });
  wait_for_line("killed", 40);
  kill_rank("killed", second);
  const Outcome outcome = await_end(started);
  EXPECT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("starts anew, restart 1 of 2: the leading process was "
                                           "ended by signal 9"),
                                 HasSubstr("starts anew, restart 2 of 2: ")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("is not read"))) << "the model of a restart";
  const auto restarts = record_of("killed").at("restarts");
  ASSERT_EQ(restarts.size(), 2u) << restarts;
  EXPECT_THAT(text_of(root_ / "killed" / "train.log"), HasSubstr("starts anew, restart 2 of 2"));
  EXPECT_THAT(text_of(root_ / "out"), HasSubstr("{\"event\":\"restart\""));
  EXPECT_THAT(text_of(root_ / "killed" / "config.toml"), HasSubstr("max_restarts = 0\n"));
  expect_same_run("one", "killed");
}

/** Shares that were measured anew could change the bits of GPUs of several models. */
TEST_F(Restarts, KeepTheSharesThatWereMeasured) {
  const pid_t started =
      start(new_run("shares", {"--gpus=2", "--gpu-shares=auto", "--max-restarts=1"}));
  wait_for_line("shares", 12);
  kill_rank("shares", 1);
  const Outcome outcome = await_end(started);
  EXPECT_EQ(outcome.code(), 0) << outcome.err;
  const size_t first = outcome.err.find("timing each ");
  EXPECT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("timing each ", first + 1), std::string::npos) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("starts anew, restart 1 of 1"));
  expect_same_run("one", "shares");
}

TEST_F(Restarts, EndWhereNoneIsLeft) {
  const pid_t started = start(new_run("left", {"--gpus=2", "--max-restarts=1"}));
  wait_for_line("left", 8);
  kill_rank("left", 1);
  wait_until([] { return record_of("left").contains("restarts"); });
  wait_for_line("left", 30);
  kill_rank("left", 1);
  const Outcome outcome = await_end(started);
  EXPECT_EQ(outcome.code(), 5) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 is gone"));
  ASSERT_EQ(ferry(go_on("left")).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "left");
}

/** A signal is for the run, whoever gets it, and ends it once. */
TEST_F(Restarts, LeaveWhereTheyAreAskedTo) {
  const pid_t started = start(new_run("asked", {"--gpus=2", "--max-restarts=3"}));
  wait_for_line("asked", 8);
  const pid_t leader = leader_of("asked");
  ::kill(started, SIGTERM);
  ::kill(leader, SIGTERM);  // as where a batch system signals all
  const Outcome outcome = await_end(started);
  EXPECT_EQ(outcome.code(), 130) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("stopped after saving"), Not(HasSubstr("starts anew"))));
  ASSERT_EQ(ferry(go_on("asked")).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "asked");
}

TEST_F(Restarts, EndWithTheirWatcher) {
  const pid_t started = start(new_run("watched", {"--gpus=2", "--max-restarts=3"}));
  wait_for_line("watched", 8);
  std::vector<pid_t> all = {leader_of("watched")};
  for (pid_t child : children_of(all.front()))
    all.push_back(child);
  EXPECT_EQ(all.size(), 2u);
  ::kill(started, SIGKILL);
  EXPECT_TRUE(wait_for(started).was_killed());
  wait_until([&] { return std::ranges::none_of(all, is_there); });
}

/** Whoever ends a run for good, as the app does, means its watcher, too. */
TEST_F(Restarts, EndWhereTheRunIsKilledForGood) {
  const pid_t started = start(new_run("for_good", {"--gpus=2", "--max-restarts=3"}));
  wait_for_line("for_good", 8);
  service::kill_trainer(root_ / "for_good");
  EXPECT_TRUE(await_end(started).was_killed());
  const pid_t leader = leader_of("for_good");
  wait_until([&] { return !is_there(leader); });
  EXPECT_FALSE(record_of("for_good").contains("restarts"));
}

/** A fault that would come again is not tried again. */
TEST_F(Restarts, AreForDeathsAlone) {
  std::ofstream(root_ / "mixed.tsv") << "text\tlabel\na\t0\nb\n";
  std::vector<std::string> words = new_run("wrong", {"--gpus=2", "--max-restarts=3"});
  std::ranges::replace(words, "--dataset=train.tsv", "--dataset=mixed.tsv");
  const Outcome outcome = ferry(words);
  EXPECT_EQ(outcome.code(), 4) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("starts anew")));
}

}  // namespace
}  // namespace ferry::test
