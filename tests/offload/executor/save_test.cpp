// A checkpoint that is written while steps go on holds what the step before it left, whatever the
// order of the queues, and changes nothing of the steps.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "tests/offload/device/wrapped_device.h"
#include "tests/offload/executor/toy_run.h"

namespace ferry::test {
namespace {

/** Saves after each step of `after`; the checkpoints, and what the run left. */
struct SavingRun {
  std::vector<Saved> saved;
  ToyResult result;
};
SavingRun run_saving(const ToyOptions& options, const std::vector<size_t>& after) {
  SavingRun out;
  out.saved.resize(after.size());
  ToyRun run(options);
  for (size_t s = 0, next = 0; s < options.n_micro.size(); ++s) {
    run.step(options.n_micro[s]);
    if (static_cast<int>(s) == options.evaluate_after) run.evaluate();
    if (next < after.size() && after[next] == s) {
      run.executor().await_saving();  // the one before
      save(run, options.shape, out.saved[next++]);
    }
  }
  run.executor().await_saving();
  EXPECT_FALSE(run.executor().is_saving());
  out.result = run.result();
  return out;
}

class SaveUnderSteps : public testing::TestWithParam<ToyKind> {
 protected:
  ToyOptions options(Placing placing, bool clips = true) const {
    return {.shape = make_shape({.compute = GetParam().compute,
                                 .placing = placing,
                                 .optim = GetParam().optim,
                                 .split_master = GetParam().split_master}),
            .evaluate_after = 2,
            .clips = clips};
  }
  void expect_holds_what_the_step_left(bool clips) const;
};

void SaveUnderSteps::expect_holds_what_the_step_left(bool clips) const {
  // The expected files come from runs that end after these steps, and save at rest.
  const std::vector<size_t> after = {0, 1, 3};
  std::vector<Saved> expected;
  for (size_t last : after) {
    ToyOptions o = options(Placing::host, clips);
    o.n_micro.resize(last + 1);
    expected.push_back(run_saving(o, {last}).saved[0]);
  }
  EXPECT_NE(expected[0].bytes, expected[1].bytes);
  const ToyResult whole = run_toy(options(Placing::host, clips));

  int n_seeds = std::getenv("FERRY_LONG") ? 200 : 20;
#ifdef __SANITIZE_THREAD__  // a seed is an order of queues on one thread
  n_seeds = 2;
#endif
  for (Placing placing : {Placing::gpu, Placing::host, Placing::mixed, Placing::states_on_gpu})
    for (bool overlap : {true, false})
      for (int seed = -2; seed < n_seeds; ++seed) {  // -2: serial, -1: threads
        ToyOptions o = options(placing, clips);
        o.overlap = overlap;
        o.device.mode = seed == -2   ? SimulatedMode::serial
                        : seed == -1 ? SimulatedMode::threads
                                     : SimulatedMode::adversarial;
        o.device.seed = static_cast<uint64_t>(std::max(0, seed));
        const SavingRun run = run_saving(o, after);
        EXPECT_EQ(run.result, whole) << "seed " << seed;
        for (size_t i = 0; i < after.size(); ++i) {
          EXPECT_TRUE(run.saved[i].has_ended);
          EXPECT_TRUE(run.saved[i].bytes == expected[i].bytes)
              << "checkpoint " << i << ", seed " << seed << ", placing "
              << static_cast<int>(placing);
        }
      }
}

TEST_P(SaveUnderSteps, HoldsWhatTheStepLeft) {
  expect_holds_what_the_step_left(true);
}
TEST_P(SaveUnderSteps, HoldsWhatTheStepLeftWithoutClipping) {
  expect_holds_what_the_step_left(false);
}

TEST_P(SaveUnderSteps, AStepDoesNotWaitForTheDisk) {
  for (bool clips : {true, false}) {
    for (SimulatedMode mode : {SimulatedMode::serial, SimulatedMode::threads}) {
      ToyOptions o = options(Placing::host, clips);
      o.device.mode = mode;
      ToyRun run(o);
      run.step(1);
      StandingDisk disk(run, o.shape, o.shape.n_blocks() - 1);
      // On threads the next step ends; in the serial mode its last update would wait: an
      // evaluation.
      mode == SimulatedMode::threads ? static_cast<void>(run.step(1))
                                     : static_cast<void>(run.evaluate());
      EXPECT_TRUE(run.executor().is_saving());
      disk.move();
      run.executor().await_saving();
      EXPECT_TRUE(disk.saved.has_ended);
      ToyOptions first = options(Placing::host, clips);
      first.n_micro = {1};
      EXPECT_TRUE(run_saving(first, {0}).saved[0].bytes == disk.saved.bytes);
    }
  }
}

// Nor does one that may be dropped: until its updates it needs nothing that is on its way.
TEST_P(SaveUnderSteps, AStepThatMayBeDroppedDoesNotWaitForTheDisk) {
  for (bool clips : {true, false}) {
    ToyOptions o = options(Placing::host, clips);
    o.evaluate_after = -1;
    o.device.mode = SimulatedMode::threads;
    const ToyResult whole = run_toy(o);
    ToyRun run(o);
    run.executor().set_watchdog(std::chrono::seconds(20));
    run.step(o.n_micro[0]);
    StandingDisk disk(run, o.shape, 0);
    EXPECT_FALSE(run.drop_step(o.n_micro[1], -1)) << "it is taken";
    EXPECT_FALSE(disk.saved.has_ended);
    // The next one needs the updates: it is dropped while the disk stands, and so it is again.
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(run.drop_step(o.n_micro[2], 3));
    disk.move();
    for (size_t s = 2; s < o.n_micro.size(); ++s)
      run.step(o.n_micro[s]);
    run.executor().await_saving();
    EXPECT_TRUE(run.result() == whole);
    ToyOptions first = options(Placing::host, clips);
    first.n_micro = {o.n_micro[0]};
    EXPECT_TRUE(run_saving(first, {0}).saved[0].bytes == disk.saved.bytes);
  }
}

// The disk is slow; the run pauses, and the rest of the checkpoint is read where it is kept.
TEST_P(SaveUnderSteps, GoesOnWhileTheGpuIsGivenAway) {
  for (Placing placing : {Placing::gpu, Placing::mixed, Placing::states_on_gpu})
    for (SimulatedMode mode : {SimulatedMode::serial, SimulatedMode::threads}) {
      ToyOptions o = options(placing);
      o.n_micro = {1};
      const Saved expected = run_saving(o, {0}).saved[0];
      o.device.mode = mode;
      ToyRun run(o);
      run.step(1);
      StandingDisk disk(run, o.shape, 1);
      EXPECT_TRUE(run.leave_and_return([&] {
        disk.move();
        run.executor().await_saving();
      }));
      EXPECT_TRUE(disk.saved.has_ended);
      EXPECT_TRUE(disk.saved.bytes == expected.bytes) << static_cast<int>(placing);
    }
}

TEST_P(SaveUnderSteps, WhatItThrowsFailsTheStep) {
  for (SimulatedMode mode :
       {SimulatedMode::serial, SimulatedMode::threads, SimulatedMode::adversarial}) {
    ToyOptions o = options(Placing::mixed);
    o.device.mode = mode;
    ToyRun run(o);
    run.step(1);
    run.executor().save(
        [](BlockStates& block) {
          if (block.block() == 2) throw std::runtime_error("no space");
        },
        [] {});
    try {
      run.step(1);
      run.executor().await_saving();
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "no space");
    }
  }
}

/** Counts how often a queue of the GPU is told to wait for a block that is not saved yet, directly
 * or by way of the host's queues. */
class WatchedDevice final : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  int n_waits_for_saves() const { return n_waits_for_saves_; }

  EventId make_event(QueueId queue) override {
    const EventId event = WrappedDevice::make_event(queue);
    queue_of_[event] = queue;
    return event;
  }
  void record(EventId event) override {
    const QueueId queue = queue_of_.at(event);
    behind_[event] =
        queue == QueueId::save ? std::set{Saved{event, ++n_records_[event]}} : awaited_by_[queue];
    WrappedDevice::record(event);
  }
  void wait(QueueId queue, EventId event) override {
    for (const Saved& saved : behind_[event]) {
      if (!is_of_gpu(queue))
        awaited_by_[queue].insert(saved);
      else if (saved.second == n_records_[saved.first] && !happened(saved.first))
        ++n_waits_for_saves_;
    }
    WrappedDevice::wait(queue, event);
  }

 private:
  using Saved = std::pair<EventId, int>;  ///< a block's event, and the number of the checkpoint

  std::map<EventId, QueueId> queue_of_;
  std::map<EventId, int> n_records_;
  std::map<EventId, std::set<Saved>> behind_;  ///< saves that end before the event
  std::map<QueueId, std::set<Saved>> awaited_by_;
  int n_waits_for_saves_ = 0;
};

// Streams may share a channel of the driver, so a checkpoint's copies may stand behind them.
TEST_P(SaveUnderSteps, NoStreamOfTheGpuWaitsForIt) {
  int n_seeds = 5;
#ifdef __SANITIZE_THREAD__  // a seed is an order of queues on one thread
  n_seeds = 1;
#endif
  for (Placing placing : {Placing::gpu, Placing::host, Placing::mixed, Placing::states_on_gpu})
    for (bool clips : {true, false})
      for (int seed = -1; seed < n_seeds; ++seed) {  // -1: serial
        ToyOptions o = options(placing, clips);
        o.device.mode = seed < 0 ? SimulatedMode::serial : SimulatedMode::adversarial;
        o.device.seed = static_cast<uint64_t>(std::max(0, seed));
        WatchedDevice* watched = nullptr;
        o.make_device = [&](WorkerPool& pool) -> std::unique_ptr<Device> {
          auto device = std::make_unique<WatchedDevice>(make_simulated_device(o.device, pool));
          watched = device.get();
          return device;
        };
        ToyOptions plain = options(placing, clips);
        plain.evaluate_after = -1;
        const ToyResult whole = run_toy(plain);
        ToyRun run(o);
        for (size_t s = 0; s < o.n_micro.size(); ++s) {
          run.step(o.n_micro[s]);
          if (s % 3 == 2) continue;  // updates of the step before wait for a save
          run.executor().await_saving();
          run.executor().save([](BlockStates&) {}, [] {});
        }
        run.executor().await_saving();
        EXPECT_EQ(watched->n_waits_for_saves(), 0)
            << "placing " << static_cast<int>(placing) << ", clips " << clips << ", seed " << seed;
        EXPECT_EQ(run.result(), whole);
      }
}

INSTANTIATE_TEST_SUITE_P(Types,
                         SaveUnderSteps,
                         testing::ValuesIn(kToyKinds),
                         [](const auto& param) { return text_of(param.param); });

}  // namespace
}  // namespace ferry::test
