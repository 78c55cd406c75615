// A throw at every action of a run, of every queue's worker, with clipping and without, on the
// simulated devices and on the CUDA device where there is one: it comes back soon, nothing that the
// failed step should not have changed has changed, and the device can be made anew.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "src/base/bytes.h"
#include "tests/offload/device/failing_device.h"
#include "tests/offload/device/tested_devices.h"
#include "tests/offload/executor/executor_probe.h"
#include "tests/offload/executor/toy_run.h"

namespace ferry::test {
namespace {

using namespace std::chrono_literals;

/** Ends the program with a word where what it watches hangs: the executor's own watchdog does not
 * see all waits. */
class Limit {
 public:
  Limit(std::string what, std::chrono::seconds patience)
      : thread_([this, what = std::move(what), patience](std::stop_token stop) {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, stop, patience, [] { return false; })) return;
          if (stop.stop_requested()) return;
          std::fprintf(stderr, "hangs: %s\n", what.c_str());
          std::abort();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

/** Every verb: blocks in both places, kept, recomputed and sent; borrowed tensors; outputs on the
 * host; and gradients on a drive. */
std::vector<StepShape> shapes_of_all_verbs() {
  return {make_shape({.n_layers = 4,
                      .n_micro_max = 2,
                      .placing = Placing::mixed,
                      .mixed_activations = true,
                      .layer_inputs_on_host = true}),
          make_shape({.n_layers = 1,
                      .n_micro_max = 2,
                      .order = AccumulationOrder::vertical,
                      .placing = Placing::everything_on_drive,
                      .tied = false,
                      // With one slot the list has no read of a second block before an update.
                      .n_state_slots = 1,
                      .n_grad_windows = 1,
                      .state_piece_elements = 4096})};
}

constexpr int kMicro = 2;

class EveryFault : public testing::TestWithParam<std::tuple<TestedDevice, bool>> {
 protected:
  struct Run {
    FailingDevice* device = nullptr;  ///< of run
    std::unique_ptr<ToyRun> run;
  };

  void SetUp() override {
    if (const std::string why = why_none(kind()); !why.empty()) GTEST_SKIP() << why;
  }
  static TestedDevice kind() { return std::get<0>(GetParam()); }
  static bool clips() { return std::get<1>(GetParam()); }

  static Run make(const StepShape& shape, PlantedFault fault = {}) {
    Run made;
    ToyOptions options{.shape = shape, .skipped_step = -1, .clips = clips()};
    options.make_device = [&made, fault](WorkerPool& pool) -> std::unique_ptr<Device> {
      auto device = make_device(kind(), pool,
                                {.seed = static_cast<uint64_t>(fault.n + 1),
                                 .poison = true,
                                 .pinned_bytes_max = fault.n % 2 == 0 ? INT64_MAX : 16 * kKiB});
      auto failing = std::make_unique<FailingDevice>(std::move(device), fault);
      made.device = failing.get();
      return failing;
    };
    made.run = std::make_unique<ToyRun>(options);
    made.run->executor().set_watchdog(20s);
    return made;
  }

  static void expect_each_comes_back(const StepShape& shape) {
    // A step that has settled, and one after it.
    Run whole = make(shape);
    const std::vector<std::byte> before = whole.run->states();
    whole.run->step(kMicro);
    whole.run->executor().settle();
    const int n_first = whole.device->n_submitted();
    const std::vector<std::byte> between = whole.run->states();
    whole.run->step(kMicro);
    whole.run->result();
    const int n_works = whole.device->n_submitted();
    // Without clipping updates run under the backward: they begin where the list has the first.
    const StepList& list = ExecutorProbe::training_list(
        whole.run->executor(), kMicro,
        clips() ? UpdateOrder::after_decision : UpdateOrder::as_grads_arrive);
    ASSERT_EQ(n_first, std::ssize(list));
    const auto n_until_update = static_cast<int>(
        std::ranges::find_if(list, [](const Action& a) { return a.verb == Verb::update; }) -
        list.begin());
    ASSERT_GT(n_until_update, 0);

    int n_kept = 0;
    // Threads are started anew for each run: a third of the actions do.
    const char* is_long = std::getenv("FERRY_LONG");
    const int stride = kind() == TestedDevice::threads && !is_long ? 3 : 1;
    for (const bool is_after : {false, true})
      for (int n = 0; n < n_works; n += stride) {
        const std::string what = (is_after ? "after " : "before ") +
                                 describe(list[static_cast<size_t>(n % n_first)], shape) +
                                 " of step " + std::to_string(n / n_first);
        SCOPED_TRACE(what);
        const Limit limit(what, 60s);
        Run made = make(shape, {.n = n, .is_after = is_after});
        std::string message;
        try {
          made.run->step(kMicro);
          made.run->executor().settle();
          made.run->step(kMicro);
          made.run->result();
        } catch (const std::exception& failure) {
          message = failure.what();
        }
        ASSERT_EQ(message, "planted");
        EXPECT_THROW(made.run->step(kMicro), std::runtime_error) << "a failed run stays failed";
        if (n % n_first >= n_until_update) continue;
        EXPECT_TRUE(made.run->states() == (n < n_first ? before : between));
        ++n_kept;
      }
    EXPECT_GT(n_kept, 2 * n_until_update / stride);

    // The device's memory and its process are none the worse.
    Run again = make(shape);
    again.run->step(kMicro);
    again.run->executor().settle();
    EXPECT_TRUE(again.run->states() == between);
  }
};

TEST_P(EveryFault, TheRunUsesEveryVerb) {
  std::set<Verb> verbs;
  for (const StepShape& shape : shapes_of_all_verbs()) {
    Run made = make(shape);
    for (const Action& action : ExecutorProbe::training_list(made.run->executor(), kMicro))
      verbs.insert(action.verb);
  }
  for (int i = 0; i < kVerbs; ++i) {
    const auto verb = static_cast<Verb>(i);
    EXPECT_EQ(verbs.contains(verb), !is_between_ranks(verb)) << name_of(verb);
  }
}

TEST_P(EveryFault, HasTheBitsOfTheSerialDeviceWithoutOne) {
  for (const StepShape& shape : shapes_of_all_verbs()) {
    ToyOptions options{
        .shape = shape, .n_micro = {kMicro, kMicro}, .skipped_step = -1, .clips = clips()};
    const ToyResult expected = run_toy(options);
    Run made = make(shape);
    made.run->step(kMicro);
    made.run->step(kMicro);
    EXPECT_TRUE(made.run->result() == expected);
  }
}

TEST_P(EveryFault, ComesBackAndLeavesTheStepBefore) {
  for (const StepShape& shape : shapes_of_all_verbs())
    expect_each_comes_back(shape);
}
TEST_P(EveryFault, OfACheckpointComesBackFromTheStepsBesideIt) {
  const StepShape shape = shapes_of_all_verbs().front();
  for (const bool is_after : {false, true})
    for (int n = 0; n <= shape.n_blocks(); ++n) {  // each block, and the end
      const std::string what = "work " + std::to_string(n) + " of a checkpoint";
      SCOPED_TRACE(what);
      const Limit limit(what, 60s);
      Run whole = make(shape);
      whole.run->step(kMicro);
      Run made = make(shape, {.n = whole.device->n_submitted() + n, .is_after = is_after});
      Saved saved;
      std::string message;
      try {
        made.run->step(kMicro);
        save(*made.run, shape, saved);
        made.run->step(kMicro);
        made.run->step(kMicro);
        made.run->executor().await_saving();
        made.run->result();
      } catch (const std::exception& failure) {
        message = failure.what();
      }
      EXPECT_EQ(message, "planted");
      // Who writes the COMPLETE of a checkpoint does it at the end.
      EXPECT_EQ(saved.has_ended, is_after && n == shape.n_blocks());
    }
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<TestedDevice, bool>>& info) {
  return name_of(std::get<0>(info.param)) + (std::get<1>(info.param) ? "" : "_without_clipping");
}
INSTANTIATE_TEST_SUITE_P(,
                         EveryFault,
                         testing::Combine(testing::ValuesIn(kTestedDevices), testing::Bool()),
                         name_of_case);

}  // namespace
}  // namespace ferry::test
