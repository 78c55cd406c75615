// The executor's behaviour when something is wrong: planted faults in the list must show in the
// bits, throws come back from step(), hangs are named.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <latch>
#include <thread>

#include "src/base/error.h"
#include "src/base/process/movement.h"
#include "tests/offload/executor/toy_run.h"
#include "tests/offload/step/list_check.h"

namespace ferry::test {
namespace {

using testing::HasSubstr;

ToyOptions adversarial(const StepShape& shape, uint64_t seed) {
  return {.shape = shape,
          .device = {.mode = SimulatedMode::adversarial, .seed = seed, .poison = true}};
}

ToyResult reference(StepShape shape, const ToyOptions& like) {
  for (BlockShape& b : shape.blocks)
    b.place = Place::device;
  ToyOptions options = like;
  options.shape = shape;
  options.device.mode = SimulatedMode::serial;
  options.fault = nullptr;
  return run_toy(options);
}

/** The first seed under which a faulty list leaves other bits; -1: none of `n`. */
int seed_that_shows(ToyOptions options, const ToyResult& expected, int n) {
  for (int seed = 0; seed < n; ++seed) {
    options.device.seed = static_cast<uint64_t>(seed);
    if (!(run_toy(options) == expected)) return seed;
  }
  return -1;
}

/** Drops every edge of the list, one at a time, or those from and to copies of layer inputs: it
 * shows where it is needed, and only there. The list has hardly any that others imply. */
void expect_needed_edges_to_show(const StepShape& shape, bool layer_inputs_alone) {
  const StepList list = training_list(shape, 2);
  ToyOptions options = adversarial(shape, 0);
  options.n_micro = {2, 2, 2};
  options.skipped_step = -1;
  const ToyResult expected = reference(shape, options);
  const auto moves_layer_input = [&](size_t i) {
    return list[i].verb == Verb::send_layer_input || list[i].verb == Verb::fetch_layer_input;
  };
  int n_needed = 0, n_edges = 0;
  for (size_t i = 0; i < list.size(); ++i)
    for (size_t e = 0;
         e < list[i].after.size() + list[i].after_update.size() + list[i].after_commit; ++e) {
      const bool of_layer_input =
          moves_layer_input(i) ||
          (e < list[i].after.size() && moves_layer_input(static_cast<size_t>(list[i].after[e])));
      if (layer_inputs_alone && !of_layer_input) continue;
      options.fault = [i, e](StepList& faulty) {
        auto drop = [](auto& edges, size_t at) {
          edges.erase(edges.begin() + static_cast<std::ptrdiff_t>(at));
        };
        Action& a = faulty[i];
        if (e < a.after.size())
          drop(a.after, e);
        else if (e < a.after.size() + a.after_update.size())
          drop(a.after_update, e - a.after.size());
        else
          a.after_commit = false;
      };
      StepList faulty = list;
      options.fault(faulty);
      const bool needed =
          !find_hazards(shape, {{&faulty, 2, true}, {&faulty, 2, true}, {&faulty, 2, true}})
               .empty();
      const int seed = seed_that_shows(options, expected, needed ? 400 : 8);
      EXPECT_EQ(seed >= 0, needed)
          << "edge " << e << " into " << describe(list[i], shape) << ", action " << i;
      n_needed += needed;
      ++n_edges;
    }
  EXPECT_GT(n_needed, 10);
  EXPECT_LE(n_edges, n_needed + n_needed / 4);
}

TEST(PlantedFault, EveryNeededEdgeShowsAndNoOtherDoes) {
  for (auto order : {AccumulationOrder::horizontal, AccumulationOrder::vertical})
    expect_needed_edges_to_show(make_shape({.n_layers = 1,
                                            .n_micro_max = 2,
                                            .order = order,
                                            .activations = Activations::host,
                                            .n_grad_slots = 1,
                                            .n_saved_slots = 1}),
                                /*layer_inputs_alone=*/false);
}

TEST(PlantedFault, EveryNeededEdgeOfADriveShowsAndNoOtherDoes) {
  for (Placing placing : {Placing::drive, Placing::all_on_drive, Placing::everything_on_drive})
    expect_needed_edges_to_show(make_shape({.n_layers = 1,
                                            .compute = DType::bf16,
                                            .n_micro_max = 2,
                                            .order = placing == Placing::everything_on_drive
                                                         ? AccumulationOrder::vertical
                                                         : AccumulationOrder::horizontal,
                                            .placing = placing,
                                            .tied = false,
                                            .n_grad_slots = 1,
                                            .state_piece_elements = 4096}),
                                /*layer_inputs_alone=*/false);
}

TEST(PlantedFault, EveryNeededEdgeOfSlotsThatAreUpdatedShowsAndNoOtherDoes) {
  for (Placing placing : {Placing::states_on_gpu, Placing::states_and_grads_on_gpu})
    for (const bool is_split : {false, true})
      expect_needed_edges_to_show(make_shape({.n_layers = 2,
                                              .compute = DType::bf16,
                                              .n_micro_max = 2,
                                              .placing = placing,
                                              .tied = false,
                                              .n_grad_slots = 1,
                                              .split_master = is_split}),
                                  /*layer_inputs_alone=*/false);
}

TEST(PlantedFault, EveryNeededEdgeOfLayerInputsShowsAndNoOtherDoes) {
  for (auto order : {AccumulationOrder::horizontal, AccumulationOrder::vertical})
    for (auto activations : {Activations::recompute, Activations::keep}) {
      StepShape shape = make_shape({.n_layers = 3,
                                    .n_micro_max = 2,
                                    .order = order,
                                    .placing = Placing::gpu,
                                    .activations = activations,
                                    .layer_inputs_on_host = true});
      // As in plans; a head's recomputation would repair what its forward left.
      shape.blocks.back().activations = Activations::keep;
      expect_needed_edges_to_show(shape, /*layer_inputs_alone=*/true);
    }
}

TEST(PlantedFault, ASlotReusedOneBlockEarlyShows) {
  const StepShape shape = make_shape({.n_layers = 4});
  ToyOptions options = adversarial(shape, 0);
  const ToyResult expected = reference(shape, options);
  options.fault = [](StepList& list) {
    for (Action& a : list)
      if (a.verb == Verb::fetch_weights)
        for (int& before : a.after) {
          do
            --before;
          while (before > 0 && list[static_cast<size_t>(before)].queue != QueueId::compute);
        }
  };
  EXPECT_GE(seed_that_shows(options, expected, 20), 0);
}

TEST(PlantedFault, AnUpdateNobodyWaitsForShows) {
  for (Placing placing : {Placing::host, Placing::mixed, Placing::states_on_gpu}) {
    const StepShape shape = make_shape({.placing = placing});
    ToyOptions options = adversarial(shape, 0);
    const ToyResult expected = reference(shape, options);
    options.fault = [](StepList& list) {
      for (Action& a : list)
        a.after_update.clear();
    };
    EXPECT_GE(seed_that_shows(options, expected, 20), 0);
    options.overlap = false;  // then nothing is under way
    EXPECT_EQ(seed_that_shows(options, expected, 20), -1);
  }
}

TEST(FaultDeathTest, AnActionThatWaitsForALaterOneIsRefused) {
  // Otherwise the wait would have no effect in the first step, and the last step's in others. So no
  // list locks up.
  const StepShape shape = make_shape({});
  ToyOptions options = adversarial(shape, 0);
  options.fault = [](StepList& list) { list[4].after.push_back(9); };
  EXPECT_DEATH(run_toy(options), "on .* waits for .* on .*, a later action");
}

constexpr SimulatedMode kModes[] = {SimulatedMode::serial, SimulatedMode::adversarial,
                                    SimulatedMode::threads};

/** Runs steps until one throws; the message, empty if none did. */
std::string failure_of(ToyRun& run, int n_steps) {
  try {
    for (int s = 0; s < n_steps; ++s)
      run.step(3);
    run.result();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "";
}

TEST(Throw, InAnyLayerOperationComesBackFromTheStep) {
  for (SimulatedMode mode : kModes)
    for (Verb verb : {Verb::forward, Verb::recompute, Verb::backward}) {
      ToyOptions options{.shape = make_shape({.activations = Activations::recompute}),
                         .device = {.mode = mode, .poison = true}};
      ToyRun run(options);
      run.step(3);
      std::atomic<int> n_after{0};
      bool thrown = false;
      run.work().before = [&](const Action& a) {
        if (thrown) ++n_after;
        if (a.verb != verb || a.block != 2 || a.micro != 1) return;
        thrown = true;
        throw std::runtime_error("planted");
      };
      EXPECT_THROW(run.step(3), std::runtime_error);
      EXPECT_EQ(n_after, 0);  // queued work drains without effect
      EXPECT_EQ(failure_of(run, 1), "planted");
    }
}

TEST(Throw, LeavesTheStatesOfTheStepBefore) {
  for (SimulatedMode mode : kModes) {
    ToyOptions options{.shape = make_shape({}), .device = {.mode = mode, .poison = true}};
    options.n_micro = {3};
    const ToyResult expected = run_toy(options);
    ToyRun run(options);
    run.step(3);
    bool throws = true;
    run.work().before = [&](const Action& a) {
      if (throws && a.verb == Verb::backward && a.block == 0)
        throw Error(Fault::machine, "test", "planted");
    };
    EXPECT_THROW(run.step(3), Error);
    throws = false;
    EXPECT_THROW(run.step(3), Error);  // a failed run stays failed
    EXPECT_EQ(run.states(), expected.states);
  }
}

TEST(Throw, InTheDecisionComesBackFromTheStep) {
  for (SimulatedMode mode : kModes) {
    ToyRun run({.shape = make_shape({}), .device = {.mode = mode}});
    run.decide = [](const StepSums&) -> Decision { throw std::runtime_error("planted"); };
    EXPECT_EQ(failure_of(run, 1), "planted");
  }
}

/** Throws in the n-th call. */
class FailingPool final : public WorkerPool {
 public:
  explicit FailingPool(int n) : n_(n) {}
  int n_workers() const override { return 1; }
  void parallel_for(int64_t n_tasks, const std::function<void(int64_t)>& task) override {
    if (--n_ < 0) throw std::runtime_error("planted");
    for (int64_t i = 0; i < n_tasks; ++i)
      task(i);
  }

 private:
  std::atomic<int> n_;
};

TEST(Throw, InHostWorkComesBackFromThisOrTheNextStep) {
  // Sums, norms and updates: each call in turn is the one that fails.
  const StepShape shape = make_shape({.placing = Placing::host});
  for (SimulatedMode mode : kModes)
    for (int n = 0; n < 40; ++n) {
      ToyRun run({.shape = shape, .device = {.mode = mode, .poison = true}},
                 std::make_unique<FailingPool>(n));
      EXPECT_EQ(failure_of(run, 2), "planted") << n;
    }
}

TEST(Throw, InAnUpdateIsNotLostWhenTheRunEnds) {
  for (SimulatedMode mode : kModes) {
    const StepShape shape = make_shape({.placing = Placing::host});
    // 15 sums, 2 of tied uses, 5 norms, 5 updates: the last update of the only step.
    ToyRun run({.shape = shape, .device = {.mode = mode}}, std::make_unique<FailingPool>(26));
    EXPECT_EQ(failure_of(run, 1), "planted");
  }
}

TEST(Watchdog, NamesTheOldestActionThatHangsAndItsQueue) {
  std::latch over(1);
  ToyRun run({.shape = make_shape({}), .device = {.mode = SimulatedMode::threads}});
  run.executor().set_watchdog(std::chrono::milliseconds(500));
  run.work().before = [&](const Action& a) {
    if (a.verb == Verb::backward && a.block == 2 && a.micro == 1) over.wait();
  };
  std::string message;
  try {
    run.step(3);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::machine);
    message = error.what();
  }
  over.count_down();
  EXPECT_THAT(message, HasSubstr("nothing has moved for 0.5 s; unfinished, oldest first: "
                                 "backward(layer.1, micro-batch 1) on compute;"));
  EXPECT_THAT(message, HasSubstr(" on host"));
}

/** Waits in the n-th call. */
class HangingPool final : public WorkerPool {
 public:
  HangingPool(int n, std::latch& over) : n_(n), over_(over) {}
  int n_workers() const override { return 1; }
  void parallel_for(int64_t n_tasks, const std::function<void(int64_t)>& task) override {
    if (--n_ == -1) over_.wait();
    for (int64_t i = 0; i < n_tasks; ++i)
      task(i);
  }

 private:
  std::atomic<int> n_;
  std::latch& over_;
};

TEST(Watchdog, NamesAnUpdateOfTheStepBefore) {
  for (bool next_step : {true, false}) {
    std::latch over(1);
    ToyRun run({.shape = make_shape({.placing = Placing::host}),
                .device = {.mode = SimulatedMode::threads}},
               std::make_unique<HangingPool>(23, over));  // 17 sums, 5 norms, 1 update
    run.executor().set_watchdog(std::chrono::milliseconds(500));
    run.step(3);
    std::string message;
    try {
      if (next_step)
        run.step(3);
      else
        run.executor().settle();
    } catch (const Error& error) {
      message = error.what();
    }
    over.count_down();
    EXPECT_THAT(message, HasSubstr("oldest first: update(layer.0) on host"));
  }
}

TEST(Watchdog, LetsASlowStepBe) {
  // Every action ends in less than the watchdog's time, all together take longer.
  ToyRun run({.shape = make_shape({}), .device = {.mode = SimulatedMode::threads}});
  run.executor().set_watchdog(std::chrono::milliseconds(1500));
  run.work().before = [](const Action&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
  };
  EXPECT_EQ(failure_of(run, 1), "");  // 30 actions
}

TEST(Watchdog, TakesItsTimeFromTheEnvironment) {
  setenv("FERRY_WATCHDOG_S", "soon", 1);
  EXPECT_THROW(ToyRun({.shape = make_shape({})}), Error);
  setenv("FERRY_WATCHDOG_S", "0.25", 1);
  std::latch over(1);
  ToyRun run({.shape = make_shape({}), .device = {.mode = SimulatedMode::threads}});
  unsetenv("FERRY_WATCHDOG_S");
  run.work().before = [&](const Action&) { over.wait(); };
  std::string message = failure_of(run, 1);
  over.count_down();
  EXPECT_THAT(message, HasSubstr("nothing has moved for 0.25 s"));
}

/** The other rank sends nothing before `over`. */
class LateRank final : public RankLink {
 public:
  explicit LateRank(std::latch& over) : over_(over) {}
  void exchange(std::span<const std::span<const std::byte>>,
                std::span<const std::span<std::byte>>,
                void* /*stream*/) override {
    over_.wait();
  }
  std::vector<std::vector<double>> gather(std::span<const double> values) override {
    return {2, {values.begin(), values.end()}};
  }

 private:
  std::latch& over_;
};

TEST(Watchdog, TellsWhetherAStepWaitsForOtherRanks) {
  for (bool is_other_late : {true, false}) {
    SCOPED_TRACE(is_other_late);
    std::latch here(1), there(1);
    LateRank other(there);
    ToyRun run({.shape = make_shape({.ranks = {.rank = 0, .world = 2}}),
                .device = {.mode = SimulatedMode::threads},
                .link = &other});
    run.executor().set_watchdog(std::chrono::seconds(4));  // it looks every half second
    run.work().before = [&](const Action& a) {
      if (a.verb == Verb::forward && a.block == 1) here.wait();
    };
    (is_other_late ? here : there).count_down();
    std::thread step([&] { EXPECT_EQ(failure_of(run, 4), ""); });
    Awaited seen;
    for (int i = 0; i < 3000 && seen.what.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      seen = awaited();
    }
    (is_other_late ? there : here).count_down();
    step.join();
    EXPECT_EQ(seen.is_of_ranks, is_other_late) << seen.what;
    EXPECT_THAT(seen.what, HasSubstr(is_other_late ? " gather_weights(" : " forward("))
        << seen.what;
    EXPECT_EQ(awaited().what, "");
  }
}

}  // namespace
}  // namespace ferry::test
