// The real trainer on a disk that loses its power: whatever was not synced is dropped in part and
// in any order, and the run goes on from its last complete checkpoint with the same bits.

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>

#include "src/runs/directory/checkpoints.h"
#include "tests/files/write/lossy_disk.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

constexpr const char* kFiles[] = {"model.safetensors", "state/adam_m.safetensors",
                                  "state/adam_v.safetensors", "state/run_state.json"};

class PowerLoss : public RunTest {
 protected:
  static std::vector<std::string> run_of(const std::string& directory, const std::string& keep) {
    return new_run(directory, {"--device=cpu", "--max-steps=20", "--save-steps=4", "--epochs=1",
                               "--save-total-limit=" + keep});
  }
  /** The last step whose checkpoint the run has called complete by then, in its metrics. */
  static int64_t promised_step(const DiskLog& log, size_t n_calls) {
    int64_t step = 0;
    for (size_t i = 0; i < n_calls; ++i) {
      const auto& bytes = log.calls()[i].bytes;
      if (bytes.size() > 4096) continue;
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (text.find("\"save_seconds\"") == std::string::npos) continue;
      step = std::max<int64_t>(step, nlohmann::json::parse(text).at("step").get<int64_t>());
    }
    return step;
  }
};

TEST_F(PowerLoss, TheRunGoesOnWithTheSameBitsFromAnyMoment) {
  ASSERT_EQ(ferry(run_of("whole", "100")).code(), 0);
  fs::create_directories(root_ / "disk");
  ::setenv("LD_PRELOAD", DISK_LOG, 1);
  ::setenv("FERRY_DISK_LOG_ROOT", (root_ / "disk").c_str(), 1);
  ::setenv("FERRY_DISK_LOG", (root_ / "log").c_str(), 1);
  const pid_t child = start(run_of("disk/run", "2"));
  for (const char* name : {"LD_PRELOAD", "FERRY_DISK_LOG_ROOT", "FERRY_DISK_LOG"})
    ::unsetenv(name);
  const Outcome logged = wait_for(child);
  ASSERT_EQ(logged.code(), 0) << logged.err;

  const DiskLog log(root_ / "log", root_ / "disk");
  ASSERT_EQ(promised_step(log, log.calls().size()), 20);
  constexpr unsigned kSeeds = 200, kResumed_every = 25;
  std::multimap<size_t, unsigned> moments;  // in the order of the log, so that it is played once
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    std::mt19937_64 dice(seed);
    moments.emplace(std::uniform_int_distribution<size_t>(0, log.calls().size())(dice), seed);
  }
  LossyDisk disk(log);
  int n_with_checkpoint = 0, n_resumed = 0;
  for (const auto& [n_calls, seed] : moments) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", after " + std::to_string(n_calls) + " calls");
    const fs::path left = root_ / "left", run = left / "run";
    fs::remove_all(left);
    std::mt19937_64 dice(seed);
    disk.play_to(n_calls);
    disk.cut_power(left, dice);
    const int64_t promised = promised_step(log, n_calls);
    if (!fs::exists(run / "config.toml")) {
      ASSERT_EQ(promised, 0) << "the run is lost";
      continue;
    }
    const auto all = runs::complete_checkpoints(run);
    ASSERT_GE(all.empty() ? 0 : all.back().step, promised);
    for (const runs::Checkpoint& checkpoint : all) {
      ASSERT_TRUE(runs::check_checkpoint(checkpoint.path));
      for (const char* file : kFiles)
        ASSERT_EQ(text_of(checkpoint.path / file),
                  text_of(root_ / "whole" / checkpoint.path.filename() / file))
            << checkpoint.path << " " << file;
    }
    n_with_checkpoint += !all.empty();
    if (seed % kResumed_every != 0) continue;
    ++n_resumed;
    const Outcome again = ferry({"train", "--resume=left/run"});
    ASSERT_EQ(again.code(), 0) << again.err;
    ASSERT_EQ(text_of(run / "final/model.safetensors"),
              text_of(root_ / "whole/final/model.safetensors"));
    ASSERT_EQ(curve_of("left/run"), curve_of("whole"));
  }
  EXPECT_GT(n_with_checkpoint, static_cast<int>(kSeeds) / 2);
  EXPECT_GT(n_resumed, 4);
}

}  // namespace
}  // namespace ferry::test
