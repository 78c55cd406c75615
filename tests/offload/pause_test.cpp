// A run that gives its GPU memory away between two steps goes on with the same bits.

#include <gtest/gtest.h>

#include "tests/offload/toy_run.h"

namespace ferry::test {
namespace {

class Pause : public testing::TestWithParam<DType> {};

TEST_P(Pause, BetweenAnyTwoStepsTheSameBits) {
  for (Placing placing : {Placing::gpu, Placing::host, Placing::mixed})
    for (SimulatedMode mode :
         {SimulatedMode::serial, SimulatedMode::threads, SimulatedMode::adversarial}) {
      ToyOptions options{.shape = make_shape({.compute = GetParam(), .placing = placing})};
      options.device.mode = mode;
      const ToyResult whole = run_toy(options);
      ToyRun run(options);
      for (int n_micro : options.n_micro) {
        run.step(n_micro);
        EXPECT_TRUE(run.leave_and_return());
      }
      EXPECT_EQ(run.result(), whole) << "placing " << static_cast<int>(placing);
    }
}

INSTANTIATE_TEST_SUITE_P(Types,
                         Pause,
                         testing::Values(DType::f32, DType::bf16),
                         [](const auto& param) { return std::string(name_of(param.param)); });

// The memory is anybody's meanwhile, and whoever took it keeps it.
TEST(SimulatedDevice, ReleasedMemoryIsFreeForOthers) {
  const auto pool = make_thread_pool(1);
  const auto device = make_simulated_device({.gpu_capacity_bytes = 1000}, *pool);
  auto first = device->reserve(Place::gpu, 800);
  const std::byte* data = first->data();
  EXPECT_THROW(device->reserve(Place::gpu, 800), std::exception);
  EXPECT_TRUE(first->release());
  auto second = device->reserve(Place::gpu, 800);
  EXPECT_NE(second->data(), nullptr);
  EXPECT_THROW(first->acquire(), std::exception);
  second.reset();
  first->acquire();
  EXPECT_EQ(first->data(), data);
}

}  // namespace
}  // namespace ferry::test
