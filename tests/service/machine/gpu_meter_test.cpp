// A GPU's load, from a driver that is not this machine's: meson test leads to it.

#include "src/service/machine/gpu_meter.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/base/bytes.h"

namespace ferry::service {
namespace {

TEST(GpuMeter, ReadsWhatTheDriverTells) {
  setenv("FAKE_NVML", "ok", 1);
  const GpuMeter meter;
  ASSERT_EQ(meter.n_gpus(), 1) << "run through meson test, which has the fake driver";
  GpuLoad load = meter.read(0);
  EXPECT_EQ(load.busy_share, 0.37);
  EXPECT_EQ(load.memory_used_bytes, kGiB);
  EXPECT_EQ(load.memory_total_bytes, 11 * kGiB);
  EXPECT_EQ(load.power_w, 123.5);
  EXPECT_EQ(load.temperature_c, 48);
  setenv("FAKE_NVML", "hot", 1);
  load = meter.read(0);
  EXPECT_EQ(load.busy_share, 1.0);
  EXPECT_EQ(load.temperature_c, 91);
  setenv("FAKE_NVML", "old", 1);
  load = meter.read(0);
  EXPECT_EQ(load.temperature_c, std::nullopt);
  EXPECT_EQ(load.power_w, 123.5);
}

TEST(GpuMeter, KnowsNothingOfAGpuThatIsNotThere) {
  setenv("FAKE_NVML", "ok", 1);
  const GpuMeter meter;
  for (const int gpu : {-1, 1})
    EXPECT_FALSE(meter.read(gpu).busy_share || meter.read(gpu).memory_used_bytes);
}

TEST(GpuMeter, WithoutADriverHasNoGpu) {
  setenv("FAKE_NVML", "9", 1);  // it is not loaded
  const GpuMeter meter;
  EXPECT_EQ(meter.n_gpus(), 0);
  EXPECT_FALSE(meter.read(0).busy_share);
}

}  // namespace
}  // namespace ferry::service
