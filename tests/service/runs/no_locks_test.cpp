// Runs on a file system without locks: their heartbeat tells whether the trainer lives, without
// anybody waiting for it.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "src/runs/heartbeat.h"
#include "src/service/runs/run_watch.h"
#include "tests/files/test_files.h"

namespace ferry::service {
namespace {

using namespace std::chrono_literals;

class RunWithoutLocks : public ::testing::Test {
 protected:
  void write(nlohmann::ordered_json process, int64_t beats) {
    const nlohmann::ordered_json record = {
        {"format_version", 1},
        {"phase", "training"},
        {"promised", nlohmann::ordered_json::object()},
        {runs::kHeartbeat, {{"process", std::move(process)}, {"beats", beats}}}};
    // As the trainer writes it: another file takes its place.
    directory_.write("new", record.dump());
    std::filesystem::rename(directory_ / "new", directory_ / "run.json");
  }
  static nlohmann::ordered_json of_another_machine() {
    return {{"boot", "another"}, {"pid_namespace", "pid:[1]"}, {"pid", 5}, {"started", 6}};
  }

  test::TempDir directory_;
  RunWatch watch_{directory_.path()};
  const RunWatch::Clock::time_point begin_ = RunWatch::Clock::now();
};

TEST_F(RunWithoutLocks, OfThisMachineIsKnownAtOnce) {
  write(runs::this_process(), 0);
  EXPECT_EQ(watch_.look(begin_).trainer, Trainer::here);
  auto gone = runs::this_process();
  gone["started"] = 1;
  write(gone, 1);
  EXPECT_EQ(watch_.look(begin_).phase, "lost");
}

TEST_F(RunWithoutLocks, OfAnotherMachineIsUnknownUntilItBeats) {
  write(of_another_machine(), 0);
  EXPECT_EQ(watch_.look(begin_).trainer, Trainer::unknown);
  EXPECT_EQ(watch_.facts().phase, "training");
  EXPECT_EQ(watch_.look(begin_ + 20s).trainer, Trainer::unknown);
  write(of_another_machine(), 1);
  EXPECT_EQ(watch_.look(begin_ + 21s).trainer, Trainer::elsewhere);
  EXPECT_EQ(watch_.look(begin_ + 50s).trainer, Trainer::elsewhere);
  EXPECT_EQ(watch_.look(begin_ + 52s).phase, "lost");
  write(of_another_machine(), 2);
  EXPECT_EQ(watch_.look(begin_ + 53s).phase, "training");
}

TEST_F(RunWithoutLocks, ThatNeverBeatsIsLost) {
  write(of_another_machine(), 0);
  EXPECT_EQ(watch_.look(begin_).trainer, Trainer::unknown);
  EXPECT_EQ(watch_.look(begin_ + 31s).trainer, Trainer::none);
  EXPECT_EQ(watch_.facts().phase, "lost");
}

}  // namespace
}  // namespace ferry::service
