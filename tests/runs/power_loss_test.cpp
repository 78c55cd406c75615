// A cut of power at any moment of a run: whatever the disk kept of what was not synced, the last
// complete checkpoint is there with its bytes, and nothing counts as complete that is not.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "src/files/hf/checkpoint_reader.h"
#include "src/files/mapped_file.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/write/atomic_file.h"
#include "src/files/write/write_behind.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/logs/metrics_log.h"
#include "tests/files/test_files.h"
#include "tests/files/write/lossy_disk.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;
using ferry::test::DiskCall;
using ferry::test::DiskLog;
using ferry::test::LossyDisk;
using ferry::test::TempDir;

constexpr const char* kStems[] = {"model", "adam_m", "adam_v"};

/** One large enough to go past the page cache, one of less than a page, one between. */
std::vector<TensorSpec> tensors() {
  return {{"large", DType::f32, {300, 411}},
          {"small", DType::f32, {5}},
          {"middle", DType::f32, {9'001}}};
}

/** A tensor's bytes after `step` of the run's `life`: it is resumed, and goes on otherwise. */
std::vector<std::byte> bytes_of(int64_t step,
                                int life,
                                const char* stem,
                                const TensorSpec& tensor) {
  size_t n_bytes = 4;
  for (const int64_t n : tensor.shape)
    n_bytes *= static_cast<size_t>(n);
  const std::string seed = fmt::format("{} {} {} {}", step, life, stem, tensor.name);
  std::mt19937_64 dice(crc32c(std::as_bytes(std::span(seed))));
  std::vector<std::byte> bytes(n_bytes);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(dice());
  return bytes;
}

/** A run as the trainer writes it, one checkpoint every five steps, two of them kept. */
class TrainedRun {
 public:
  TrainedRun(const fs::path& run, int life, int64_t first_step, WriteBehind& behind)
      : run_(run), life_(life), behind_(behind), directory_(run) {
    if (life == 0) write_text_file(run / "config.toml", "seed = 1\n");
    directory_.set_phase(Phase::preparing);
    if (life > 0) {
      ferry_disk_log_mark(fmt::format("goes_back {}", first_step).c_str());
      put_aside_later(run, first_step);
      ferry_disk_log_mark(fmt::format("back {}", first_step).c_str());
    }
    metrics_.emplace(run, first_step);
    directory_.set_phase(Phase::training);
  }

  void step(int64_t step) {
    metrics_->append({{"step", step}, {"loss", 1.0 / static_cast<double>(step)}});
    if (step % 5 == 0) save(step);
  }

 private:
  void save(int64_t step) {
    NewCheckpoint checkpoint(run_, step);
    StoredChecksums checksums;
    for (const char* stem : kStems) {
      const bool is_model = std::string(stem) == "model";
      // Shards of 64 KB: each of them and the index is a file that may be lost.
      CheckpointWriter writer(is_model ? checkpoint.path() : checkpoint.path() / "state", tensors(),
                              is_model ? 1 << 16 : kShard_bytes_max, stem);
      writer.write_directly(behind_);
      for (const TensorSpec& tensor : tensors()) {
        const auto bytes = bytes_of(step, life_, stem, tensor);
        checksums[stem][tensor.name] = crc32c(bytes);
        const TensorPart whole[] = {{tensor.name, 0, std::ssize(bytes)}};
        size_t at = 0;
        writer.fill(whole, [&](std::span<const std::span<std::byte>> parts) {
          for (const auto part : parts) {
            std::copy_n(bytes.begin() + static_cast<long>(at), part.size(), part.begin());
            at += part.size();
          }
        });
      }
      writer.end_run();
      writer.finish();
    }
    write_json_file(checkpoint.path() / "trainer_state.json", {{"global_step", step}});
    write_checksums(checkpoint.path(), checksums,
                    nlohmann::ordered_json({{"n_steps", step}, {"life", life_}}).dump());
    metrics_->sync();
    ferry_disk_log_mark(fmt::format("completes {} {}", step, life_).c_str());
    checkpoint.commit();
    ferry_disk_log_mark(fmt::format("complete {} {}", step, life_).c_str());
    remove_oldest(run_, 2);
  }

  fs::path run_;
  int life_;
  WriteBehind& behind_;
  RunDirectory directory_;
  std::optional<MetricsLog> metrics_;
};

/** The whole life of a run, with a log of what it asked of its disk. */
fs::path logged_run(const TempDir& directory) {
  constexpr size_t kBuffer_bytes = 24 * WriteBehind::kSlot_bytes;
  std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(4096, kBuffer_bytes)), &std::free);
  const fs::path log = directory / "log";
  ferry_disk_log_begin((directory / "disk").c_str(), log.c_str());
  {
    WriteBehind behind({memory.get(), kBuffer_bytes});
    const fs::path run = directory / "disk" / "runs" / "run";
    {
      TrainedRun first(run, 0, 0, behind);
      for (int64_t step = 1; step <= 22; ++step)
        first.step(step);
    }  // killed
    {
      TrainedRun second(run, 1, 20, behind);
      for (int64_t step = 21; step <= 27; ++step)
        second.step(step);
    }
    TrainedRun third(run, 2, 20, behind);  // goes back, and comes by step 25 again
    for (int64_t step = 21; step <= 30; ++step)
      third.step(step);
  }
  ferry_disk_log_end();
  return log;
}

/** The run's promises at a moment of its log. */
struct Promised {
  bool has_begun = false;
  int64_t step = 0;  ///< 0: no checkpoint is complete
  int life = 0;
  int64_t coming = 0;  ///< what it may go on from as well; 0: nothing
};
Promised promised_after(const DiskLog& log, size_t n_calls) {
  Promised promised;
  for (size_t i = 0; i < n_calls; ++i) {
    if (log.calls()[i].record.call != DiskCall::mark) continue;
    char word[16] = {};
    long step = 0;
    int life = 0;
    std::sscanf(log.calls()[i].path.c_str(), "%15s %ld %d", word, &step, &life);
    if (word == std::string("completes") || word == std::string("goes_back"))
      promised.coming = step;
    if (word == std::string("complete")) promised = {true, step, life, 0};
    if (word == std::string("back")) promised = {true, step, 0, 0};
  }
  return promised;
}

/** Every byte is what the run wrote after that step of one of its lives; says which. */
int expect_whole(const Checkpoint& checkpoint) {
  const auto state =
      nlohmann::json::parse(read_text_file(checkpoint.path / "state" / kRunStateName));
  EXPECT_EQ(state.at("n_steps"), checkpoint.step);
  const int life = state.at("life");
  for (const char* stem : kStems) {
    const auto file = CheckpointReader::open(
        stem == std::string("model") ? checkpoint.path : checkpoint.path / "state", stem);
    for (const TensorSpec& tensor : tensors())
      EXPECT_TRUE(std::ranges::equal(file.get(tensor.name).bytes,
                                     bytes_of(checkpoint.step, life, stem, tensor)))
          << checkpoint.path << " " << stem << " " << tensor.name;
  }
  return life;
}

TEST(PowerLoss, TheLastCompleteCheckpointIsThereAtAnyMoment) {
  const TempDir directory;
  const DiskLog log(logged_run(directory), directory / "disk");
  ASSERT_GT(log.calls().size(), 500U);
  constexpr int kSeeds = 400;
  int n_resumed = 0, n_of_one_in_progress = 0;
  // In the order of the log, so that it is played once.
  std::multimap<size_t, unsigned> moments;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    std::mt19937_64 dice(seed);
    moments.emplace(std::uniform_int_distribution<size_t>(0, log.calls().size())(dice), seed);
  }
  LossyDisk disk(log);
  for (const auto& [n_calls, seed] : moments) {
    SCOPED_TRACE(fmt::format("seed {}, after {} calls", seed, n_calls));
    const Promised promised = promised_after(log, n_calls);
    const fs::path left = directory / "left", run = left / "runs" / "run";
    fs::remove_all(left);
    std::mt19937_64 dice(seed);
    disk.play_to(n_calls);
    disk.cut_power(left, dice);
    try {
      if (!fs::exists(run / "config.toml")) {
        ASSERT_EQ(promised.step, 0) << "the run is lost";
        continue;
      }
      for (const Checkpoint& checkpoint : complete_checkpoints(run))
        EXPECT_TRUE(check_checkpoint(checkpoint.path)) << checkpoint.path;
      const RunDirectory again(run);  // as `ferry train --resume` begins
      for (const Checkpoint& checkpoint : complete_checkpoints(run)) {
        EXPECT_TRUE(check_checkpoint(checkpoint.path));
        expect_whole(checkpoint);
      }
      const auto last = find_resume_point(run).checkpoint;
      const int64_t step = last ? last->step : 0;
      EXPECT_TRUE(step == promised.step || (promised.coming > 0 && step == promised.coming))
          << "goes on from " << step << "; complete was " << promised.step;
      n_resumed += last.has_value();
      n_of_one_in_progress += last && step != promised.step;
      // Every step up to there has its line, once.
      EXPECT_EQ(MetricsLog(run, step).losses().size(), static_cast<size_t>(step));
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(n_resumed, kSeeds / 2);
  EXPECT_GT(n_of_one_in_progress, 0) << "no cut fell between the last sync and the end of a save";
}

}  // namespace
}  // namespace ferry::runs
