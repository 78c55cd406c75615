// Results of measuring on a CPU: every figure that a profile needs, of the sizes asked for; what is
// left out is named; nothing is left behind. No time is asserted.

#include "src/measure/measure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "offload/device/host/mapped_pages.h"
#include "src/base/error.h"
#include "src/measure/kernels/update.h"
#include "src/measure/memory.h"
#include "src/measure/timing.h"
#include "src/measure/transfers/copies.h"
#include "src/measure/transfers/copy_traffic.h"
#include "src/measure/transfers/disk.h"
#include "tests/config/config_fixture.h"

namespace ferry::measure {
namespace {

using config::TemporaryDirectory;

/** On this machine's CPU, in a moment. */
MeasureOptions small(const TemporaryDirectory& directory) {
  return {.uses_gpu = false,
          .seconds = 0.1,
          .patience_s = 240,
          .host_bytes_max = 64 * kMiB,
          .disk_bytes_max = 16 * kMiB,
          .directory = directory.path()};
}

TEST(HostMemory, IsNoMoreThanIsMeasuredIn) {
  for (const bool has_copies : {false, true})
    for (const int64_t most_bytes :
         {int64_t{0}, 3 * kMiB / 2, 64 * kMiB, kHostBytes_default, 100 * kGiB}) {
      const HostParts parts = host_parts(most_bytes, has_copies);
      EXPECT_LE(parts.all_bytes(), most_bytes);
      EXPECT_LT(parts.update_bytes, update_bytes_most() + kMiB);
      EXPECT_EQ(parts.copies_bytes > 0, has_copies && most_bytes > 5 * kMiB);
      EXPECT_EQ(parts.all_bytes() % kMiB, 0);
    }
  EXPECT_GE(host_parts(kHostBytes_default, true).update_bytes, update_bytes_most());
  EXPECT_EQ(host_parts(100 * kGiB, true).all_bytes(),
            host_parts(kHostBytes_default, true).all_bytes());
}

TEST(Timing, AWarmUpDoesNotCountAndShortWorkIsRepeated) {
  std::vector<int> calls;
  const double seconds = sample({.seconds = 10, .n_samples = 4}, [&](int n) {
    calls.push_back(n);
    return calls.size() == 1 ? 1e9 : n * 0.05;
  });
  EXPECT_DOUBLE_EQ(seconds, 0.05);
  EXPECT_EQ(calls, (std::vector<int>{1, 1, 50, 50, 50, 50}));
}

/** A GPU's clock depends on what ran before. */
TEST(Timing, OtherWorkComesBeforeEachSampleAndDoesNotCount) {
  std::string calls;
  double before_s = 0;
  const double seconds = sample({.seconds = 9,
                                 .n_samples = 3,
                                 .before =
                                     [&](double s) {
                                       calls += "b";
                                       before_s = s;
                                     }},
                                [&](int n) {
                                  calls += std::to_string(n) + " ";
                                  return n * 0.05;
                                });
  EXPECT_DOUBLE_EQ(seconds, 0.05);
  EXPECT_DOUBLE_EQ(before_s, 2);  // of three seconds a sample
  EXPECT_EQ(calls, "1 b1 20 b20 b20 ");
}

TEST(Timing, LongWorkIsDoneOnceAfterTheWarmUp) {
  int n_calls = 0;
  EXPECT_EQ(sample({.seconds = 0.1}, [&](int n) { return ++n_calls, n * 7.0; }), 7);
  EXPECT_EQ(n_calls, 2);
}

TEST(Timing, FourDigitsAreKept) {
  EXPECT_EQ(rounded(123456), 123500);
  EXPECT_EQ(rounded(0.00012345678), 0.0001235);
  EXPECT_EQ(rounded(9.9999e12), 1e13);
  EXPECT_EQ(rounded(0), 0);
}

TEST(Timing, WhatComesAfterItsTimeIsLeftOutButForTheFirst) {
  Allotted none(0), much(1000);
  EXPECT_FALSE(none.is_over());
  EXPECT_TRUE(none.is_over());
  EXPECT_TRUE(none.is_over());
  EXPECT_EQ(none.n_asked(), 3);
  EXPECT_EQ(none.n_left_out(), 2);
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(much.is_over());
  EXPECT_EQ(much.n_left_out(), 0);
}

TEST(Measure, APartThatIsOutOfTimeNamesWhatItLeavesOut) {
  TemporaryDirectory directory;
  MeasureOptions options = small(directory);
  options.seconds = 1e-9;
  options.patience_s = 0;
  const Part part = Part::gemm;
  const Measured measured = measure({&part, 1}, options);
  EXPECT_EQ(measured.profile.host.gemms.size(), 1u);
  EXPECT_EQ(measured.skipped,
            std::vector<std::string>{"gemm: 5 of 6 figures, for their time was up"});
}

TEST(Measure, ACpuGivesAWholeProfileThatIsReadBack) {
  TemporaryDirectory directory;
  std::vector<std::string> parts;
  MeasureOptions options = small(directory);
  options.on_part = [&](std::string_view part) { parts.emplace_back(part); };
  const Measured measured = measure(all_parts(), options);
  EXPECT_EQ(parts, (std::vector<std::string>{"memory", "adamw", "dram", "copy", "gpu", "gemm",
                                             "attention", "disk"}));
  const MachineProfile& profile = measured.profile;
  EXPECT_FALSE(profile.gpu);
  EXPECT_EQ(profile.name, "CPU");
  EXPECT_TRUE(profile.source.starts_with("measured 20")) << profile.source;
  EXPECT_GE(profile.host.memory_bytes, kGiB / 4);
  EXPECT_FALSE(profile.host.simd.empty());
  EXPECT_GE(profile.host.process.at_start_bytes, 32 * kMiB);
  EXPECT_LT(profile.host.process.at_start_bytes, 4 * kGiB);
  EXPECT_GE(profile.host.process.later_bytes, kMiB);
  EXPECT_LT(profile.host.process.later_bytes, kGiB);

  std::vector<int> threads, expected;
  for (const UpdateRate& rate : profile.host.updates) {
    threads.push_back(rate.n_threads);
    EXPECT_GT(rate.alone, 0);
    EXPECT_EQ(rate.beside_copies, 0);
  }
  for (int n = 1; n < profile.host.n_threads; n *= 2)
    expected.push_back(n);
  expected.push_back(profile.host.n_threads);
  EXPECT_EQ(threads, expected);
  EXPECT_NEAR(profile.host.memory_bytes_per_s, 28 * profile.host.updates.back().alone,
              1e-3 * profile.host.memory_bytes_per_s);
  EXPECT_GT(profile.host.dram_bytes_per_s, 0);

  std::set<std::pair<int64_t, int64_t>> gemms;
  for (const GemmRate& gemm : profile.host.gemms) {
    EXPECT_EQ(gemm.type, DType::f32);
    gemms.insert({gemm.rows, gemm.width});
  }
  EXPECT_EQ(gemms,
            (std::set<std::pair<int64_t, int64_t>>{
                {512, 384}, {512, 768}, {512, 1024}, {2048, 384}, {2048, 768}, {2048, 1024}}));
  ASSERT_EQ(profile.host.attentions.size(), 2u);
  EXPECT_EQ(profile.host.attentions[0].backend, "cpu_math");
  EXPECT_EQ(profile.host.attentions[0].length, 128);
  EXPECT_EQ(profile.host.attentions[1].length, 512);

  // Some file systems (tmpfs of older kernels) take no direct writes, and a busy disk gives up.
  if (measured.skipped.empty()) {
    EXPECT_GT(profile.disk.write_bytes_per_s, 0);
    EXPECT_GT(profile.disk.read_bytes_per_s, 0);
  } else {
    ASSERT_EQ(measured.skipped.size(), 1u);
    EXPECT_CONTAINS(measured.skipped[0], "disk: ");
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));

  const std::string text = to_json(profile);
  EXPECT_EQ(to_json(parse_machine_profile(text, "measured")), text);
}

TEST(Measure, OnlyThePartAskedForIsThere) {
  TemporaryDirectory directory;
  const Part part = Part::gemm;
  const MachineProfile profile = measure({&part, 1}, small(directory)).profile;
  EXPECT_EQ(profile.host.gemms.size(), 6u);
  EXPECT_TRUE(profile.host.updates.empty());
  EXPECT_TRUE(profile.host.attentions.empty());
  EXPECT_EQ(profile.host.dram_bytes_per_s, 0);
  EXPECT_EQ(profile.disk.write_bytes_per_s, 0);
  EXPECT_EQ(profile.host.process.at_start_bytes, 0);
}

TEST(MemoryBesidePlans, IsWhatWasTouchedAndLiesInNoArena) {
  constexpr int64_t kBytes = 64 * kMiB, kNoise_bytes = 8 * kMiB;
  const int64_t before_bytes = resident_beside_plans_bytes();
  const MappedPages arena(kBytes, "memory", "");
  std::memset(arena.data(), 1, static_cast<size_t>(kBytes));
  EXPECT_LT(resident_beside_plans_bytes() - before_bytes, kNoise_bytes);
  const std::vector<char> other(static_cast<size_t>(kBytes), 1);
  EXPECT_GT(resident_beside_plans_bytes() - before_bytes, kBytes - kNoise_bytes);
  EXPECT_LT(resident_beside_plans_bytes() - before_bytes, kBytes + kNoise_bytes);
}

TEST(MemoryBesidePlans, AGpusKernelsGraphsAndContextAreSeen) {
  if (const CudaProbe probe = probe_cuda(); !probe.usable) GTEST_SKIP() << probe.why_not;
  TemporaryDirectory directory;
  MeasureOptions options = small(directory);
  options.uses_gpu = true;
  const Part part = Part::memory;
  const Measured measured = measure({&part, 1}, options);
  EXPECT_EQ(measured.skipped, std::vector<std::string>{});
  const GpuProfile gpu = measured.profile.gpu.value();
  EXPECT_GT(gpu.kernels.loaded_bytes, 16 * kMiB);
  EXPECT_LT(gpu.kernels.loaded_bytes, 512 * kMiB);
  EXPECT_GT(gpu.kernels.wide_heads_bytes, 0);
  EXPECT_GE(gpu.kernels.wide_rows_bytes, gpu.kernels.wide_heads_bytes);
  EXPECT_LT(gpu.kernels.wide_rows_bytes, 512 * kMiB);
  EXPECT_GT(gpu.kernels.graph_bytes, 0);
  EXPECT_LT(gpu.kernels.graph_bytes, kMiB);
  EXPECT_GT(gpu.kernels.graph_host_bytes, 0);
  EXPECT_LT(gpu.kernels.graph_host_bytes, kMiB);
  EXPECT_GE(gpu.process.at_start_bytes, measured.profile.host.process.at_start_bytes);
  EXPECT_GT(gpu.process.later_bytes, 16 * kMiB);
  EXPECT_LT(gpu.process.later_bytes, kGiB);
}

TEST(Measure, WhatMemoryIsTooShortForIsNamedAndTheRestMeasured) {
  TemporaryDirectory directory;
  MeasureOptions options = small(directory);
  options.host_bytes_max = 4 * kMiB;
  const Part parts[] = {Part::update, Part::dram, Part::gemm};
  const Measured measured = measure(parts, options);
  ASSERT_EQ(measured.skipped.size(), 2u);
  EXPECT_TRUE(measured.skipped[0].starts_with("adamw: ")) << measured.skipped[0];
  EXPECT_CONTAINS(measured.skipped[0], "4.0 MiB of host memory");
  EXPECT_TRUE(measured.skipped[1].starts_with("dram: ")) << measured.skipped[1];
  EXPECT_TRUE(measured.profile.host.updates.empty());
  EXPECT_FALSE(measured.profile.host.gemms.empty());
}

TEST(Measure, ADirectoryThatTakesNoFilesIsNamed) {
  EXPECT_CONTAINS(config::usage_error([] { measure_disk("/no/such/directory", kMiB * 16, 0.1); },
                                      Fault::machine),
                  "/no/such/directory");
  TemporaryDirectory directory;
  EXPECT_CONTAINS(
      config::usage_error([&] { measure_disk(directory.path(), 100, 0.1); }, Fault::machine),
      "no room");
}

/** A card that is nearly full, or whose driver fails, is left out; the CPU is measured. */
TEST(Measure, AGpuThatCannotBeUsedIsNamed) {
  MeasureOptions options;
  options.host_bytes_max = 0;
  std::vector<std::string> skipped;
  const Bench full(options, {.usable = true, .free_bytes = kGiB}, skipped);
  EXPECT_FALSE(full.is_cuda());
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_CONTAINS(skipped[0], "the GPU: ");
  EXPECT_CONTAINS(skipped[0], "1.00 GiB of its memory are free");
  if (probe_cuda().usable) return;
  const Bench broken(options, {.usable = true, .free_bytes = 80 * kGiB}, skipped);
  EXPECT_FALSE(broken.is_cuda());
  EXPECT_EQ(skipped.size(), 2u);
}

/** The simulated device in place of a GPU: its copies go through the same queues. */
class Copies : public testing::Test {
 protected:
  Copies() : bench_(options(), CudaProbe{}, skipped_) {
    bench_.from_host = Arena(from_.data(), kRoom_bytes);
    bench_.to_host = Arena(to_.data(), kRoom_bytes);
  }
  static MeasureOptions options() { return {.uses_gpu = false, .host_bytes_max = 0}; }
  static constexpr int64_t kRoom_bytes = 8 * kMiB;
  std::vector<std::byte> from_ = std::vector<std::byte>(kRoom_bytes, std::byte{7});
  std::vector<std::byte> to_ = std::vector<std::byte>(kRoom_bytes, std::byte{7});
  std::vector<std::string> skipped_;
  Bench bench_;
};

TEST_F(Copies, AreMeasuredEachWayAndBothBySize) {
  const int64_t sizes[] = {kMiB, 4 * kMiB, 8 * kMiB, 16 * kMiB};
  const std::vector<CopyRate> rates = measure_copies(bench_, sizes, 0.02);
  ASSERT_EQ(rates.size(), 3u) << "what is larger than the room is left out";
  for (size_t i = 0; i < rates.size(); ++i) {
    EXPECT_EQ(rates[i].n_bytes, sizes[i]);
    for (const double rate :
         {rates[i].h2d, rates[i].d2h, rates[i].h2d_beside_d2h, rates[i].d2h_beside_h2d})
      EXPECT_GT(rate, 0);
  }
}

TEST_F(Copies, GoThroughAllOfTheirMemoryInTheirDirectionOnly) {
  bench_.gpu.reset();
  std::byte* const gpu = bench_.gpu.take(kRoom_bytes);
  std::fill(gpu, gpu + kRoom_bytes, std::byte{1});
  CopyTraffic up(bench_, {.d2h = false, .piece_bytes = kMiB});
  up.await(4);
  up.stop();
  EXPECT_GT(up.bytes_per_s(QueueId::h2d), 0);
  EXPECT_EQ(up.bytes_per_s(QueueId::d2h), 0);
  EXPECT_TRUE(std::equal(gpu, gpu + kRoom_bytes, from_.begin()));
  std::fill(gpu, gpu + kRoom_bytes, std::byte{2});
  CopyTraffic down(bench_, {.h2d = false, .piece_bytes = kMiB});
  down.await(4);
  down.stop();
  EXPECT_EQ(down.bytes_per_s(QueueId::h2d), 0);
  EXPECT_TRUE(std::equal(gpu, gpu + kRoom_bytes, to_.begin()));
  EXPECT_EQ(from_[0], std::byte{7});
}

TEST_F(Copies, AFailureReachesTheCaller) {
  CopyTraffic traffic(bench_, {.piece_bytes = kMiB});
  traffic.stop();
  bench_.device().fail(std::make_exception_ptr(Error(Fault::machine, "test", "a broken link")));
  const auto starts = [&] { CopyTraffic again(bench_, {.piece_bytes = kMiB}); };
  EXPECT_CONTAINS(config::usage_error(starts, Fault::machine), "a broken link");
}

}  // namespace
}  // namespace ferry::measure
