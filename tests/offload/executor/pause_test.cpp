// A run that gives its GPU memory away between two steps goes on with the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "tests/offload/executor/executor_probe.h"
#include "tests/offload/executor/toy_run.h"

namespace ferry::test {
namespace {

class Pause : public testing::TestWithParam<DType> {};

TEST_P(Pause, BetweenAnyTwoStepsTheSameBits) {
  for (Placing placing : {Placing::gpu, Placing::host, Placing::mixed, Placing::states_on_gpu})
    for (SimulatedMode mode :
         {SimulatedMode::serial, SimulatedMode::threads, SimulatedMode::adversarial}) {
      ToyOptions options{.shape = make_shape({.compute = GetParam(),
                                              .placing = placing,
                                              .layer_inputs_on_host = placing == Placing::mixed})};
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

// Wherever a step is dropped, and whether the GPU's memory goes away before it comes again: the
// same bits, also of a checkpoint that is on its way meanwhile.
void expect_dropped_anywhere_comes_again(std::span<const ShapeOptions> shapes,
                                         bool clips,
                                         int n_dropped_least) {
  for (const ShapeOptions& shape : shapes) {
    const Placing placing = shape.placing;
    ToyOptions options{.shape = make_shape(shape)};
    options.clips = clips;
    const ToyResult whole = run_toy(options);
    Saved first;  // of the run before
    bool is_taken = false;
    int n_dropped = 0;
    for (int at = 0; !is_taken; ++at) {
      constexpr SimulatedMode kModes[] = {SimulatedMode::adversarial, SimulatedMode::threads,
                                          SimulatedMode::adversarial, SimulatedMode::serial};
      options.device.mode = kModes[at % 4];
      options.device.seed = static_cast<uint64_t>(at);
      ToyRun run(options);
      Saved saved;
      if (at % 2 == 0)
        ExecutorProbe::set_run_ahead(run.executor(), static_cast<size_t>(1 + at % 5));
      is_taken = true;
      for (size_t s = 0; s < options.n_micro.size(); ++s) {
        if (run.drop_step(options.n_micro[s], at)) {
          is_taken = false;
          ++n_dropped;
          if (at % 3 == 0 && !options.shape.computes_on_host) {
            EXPECT_TRUE(run.leave_and_return());
          }
          run.step(options.n_micro[s]);
        }
        if (s == 1) save(run, options.shape, saved);
      }
      run.executor().await_saving();
      ASSERT_EQ(run.result(), whole) << "placing " << static_cast<int>(placing) << " at " << at;
      ASSERT_TRUE(saved.has_ended && (at == 0 || saved.bytes == first.bytes)) << "at " << at;
      first = std::move(saved);
    }
    EXPECT_GT(n_dropped, n_dropped_least);
  }
}
void expect_dropped_anywhere_comes_again(DType compute, bool clips) {
  std::vector<ShapeOptions> shapes;
  for (Placing placing : {Placing::gpu, Placing::host, Placing::mixed, Placing::states_on_gpu})
    shapes.push_back({.compute = compute,
                      .placing = placing,
                      .layer_inputs_on_host = placing == Placing::mixed});
  expect_dropped_anywhere_comes_again(shapes, clips, 100);
}
TEST_P(Pause, AStepThatIsDroppedAnywhereComesAgain) {
  expect_dropped_anywhere_comes_again(GetParam(), true);
}
// As far as its first update.
TEST_P(Pause, AStepThatIsDroppedWithoutClippingToo) {
  expect_dropped_anywhere_comes_again(GetParam(), false);
}
// A drive may still be at work with the step's gradients.
TEST_P(Pause, AStepThatIsDroppedWithGradientsOnADriveToo) {
  std::vector<ShapeOptions> shapes;
  for (Placing placing : {Placing::everything_on_drive, Placing::everything_on_drive_of_cpu})
    shapes.push_back({.n_layers = 1,
                      .compute = GetParam(),
                      .order = AccumulationOrder::vertical,
                      .placing = placing,
                      .tied = false,
                      .n_grad_slots = 1,
                      .n_grad_windows = 1,
                      .state_piece_elements = 2048});
  expect_dropped_anywhere_comes_again(shapes, /*clips=*/true, 50);
}

// A checkpoint still has blocks of the GPU to read, and the disk stands: a step that shall be
// dropped is dropped at once, for it has not been decided.
TEST_P(Pause, DoesNotWaitForTheDisk) {
  for (bool clips : {true, false})
    for (Placing placing : {Placing::gpu, Placing::host, Placing::mixed, Placing::states_on_gpu})
      for (int stops_at : {0, 1}) {
        if (placing == Placing::states_on_gpu && !clips) continue;  // no update comes earlier there
        ToyOptions options{.shape =
                               make_shape({.compute = GetParam(),
                                           .placing = placing,
                                           .layer_inputs_on_host = placing == Placing::mixed})};
        options.device.mode = SimulatedMode::threads;
        options.clips = clips;
        const ToyResult whole = run_toy(options);
        ToyRun run(options);
        run.executor().set_watchdog(std::chrono::seconds(200));
        run.step(options.n_micro[0]);
        StandingDisk disk(run, options.shape, stops_at);
        const auto began = std::chrono::steady_clock::now();
        const auto is_late = [&](int) {
          if (std::chrono::steady_clock::now() - began < std::chrono::seconds(100)) return;
          ADD_FAILURE() << "it waits";
          disk.move();
        };
        // At the last moment that it is asked; where nothing waits for the disk that is too late.
        const bool is_dropped = run.drop_step(
            options.n_micro[1],
            static_cast<int>(ExecutorProbe::training_list(run.executor(), 1).size()), is_late);
        const auto n_on_gpu = std::ranges::count_if(options.shape.blocks, [](const BlockShape& b) {
          return b.place.states == Place::device;
        });
        EXPECT_EQ(is_dropped, stops_at < n_on_gpu);
        EXPECT_TRUE(run.leave_and_return()) << "the GPU's queues are empty, or wait for the disk";
        EXPECT_FALSE(disk.saved.has_ended);
        disk.move();
        for (size_t s = is_dropped ? 1 : 2; s < options.n_micro.size(); ++s)
          run.step(options.n_micro[s]);
        run.executor().await_saving();
        EXPECT_EQ(run.result(), whole) << static_cast<int>(placing);
        EXPECT_TRUE(disk.saved.has_ended);
      }
}

// Otherwise minutes of work would lie before a pause.
TEST_P(Pause, TheGpuHasNoMoreThanTheLimitBeforeIt) {
  ToyOptions options{.shape = make_shape({.compute = GetParam(), .placing = Placing::host})};
  options.device.mode = SimulatedMode::adversarial;  // runs what is waited for, and nothing else
  for (size_t limit : {1, 2, 7}) {
    ToyRun run(options);
    ExecutorProbe::set_run_ahead(run.executor(), limit);
    int n_run = 0;
    run.work().before = [&](const Action&) { ++n_run; };
    const StepList& list = ExecutorProbe::training_list(run.executor(), 3);
    run.drop_step(3, -1, [&](int asked) {
      const auto n_submitted =
          std::count_if(list.begin(), list.begin() + asked,
                        [](const Action& action) { return is_pass(action.verb); });
      EXPECT_LT(n_submitted - n_run, static_cast<int>(limit) + 1);
    });
    EXPECT_GT(n_run, 0);
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
  auto first = device->reserve(Place::device, 800);
  const std::byte* data = first->data();
  EXPECT_THROW(device->reserve(Place::device, 800), std::exception);
  EXPECT_TRUE(first->release());
  auto second = device->reserve(Place::device, 800);
  EXPECT_NE(second->data(), nullptr);
  EXPECT_THROW(first->acquire(), std::exception);
  second.reset();
  first->acquire();
  EXPECT_EQ(first->data(), data);
}

}  // namespace
}  // namespace ferry::test
