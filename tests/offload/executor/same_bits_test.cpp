// Promise 2 without torch: wherever the bytes live and in whatever order the queues run, the toy
// model's weights, states, losses and norms have the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "tests/offload/device/tested_devices.h"
#include "tests/offload/executor/executor_probe.h"
#include "tests/offload/executor/toy_run.h"

namespace ferry::test {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

int n_seeds() {
  return std::getenv("FERRY_LONG") ? 200 : 8;
}

class SameBits : public testing::TestWithParam<ToyKind> {
 protected:
  ShapeOptions shape() const {
    return {.compute = GetParam().compute,
            .optim = GetParam().optim,
            .split_master = GetParam().split_master};
  }
  static ToyOptions serial(const ShapeOptions& o) { return {.shape = make_shape(o)}; }
  static ToyOptions with_seed(const ShapeOptions& o, int seed) {
    return {.shape = make_shape(o),
            .device = {.mode = SimulatedMode::adversarial,
                       .seed = static_cast<uint64_t>(seed),
                       .poison = true}};
  }
  /** Resident, kept, serial: what all others equal. */
  ToyResult reference() const {
    ShapeOptions o = shape();
    o.placing = Placing::gpu;
    return run_toy(serial(o));
  }
};

constexpr AccumulationOrder kOrders[] = {AccumulationOrder::horizontal,
                                         AccumulationOrder::vertical};
constexpr Activations kActivations[] = {Activations::keep, Activations::selective,
#ifndef __SANITIZE_THREAD__  // the actions of selective
                                        Activations::recompute,
#endif
                                        Activations::host};
constexpr Placing kPlacings[] = {Placing::gpu,
                                 Placing::host,
                                 Placing::mixed,
                                 Placing::states_on_gpu,
                                 Placing::states_and_grads_on_gpu,
                                 Placing::drive,
                                 Placing::all_on_drive,
                                 Placing::weights_on_gpu,
                                 Placing::grads_on_drive,
                                 Placing::everything_on_drive,
                                 Placing::drive_of_cpu,
                                 Placing::all_on_drive_of_cpu,
                                 Placing::everything_on_drive_of_cpu};
/** Those with gradients on a drive. */
constexpr Placing kGradPlacings[] = {Placing::grads_on_drive, Placing::everything_on_drive,
                                     Placing::everything_on_drive_of_cpu};

TEST_P(SameBits, AReferenceThatLearnsSomething) {
  const ToyResult a = reference();
  ASSERT_EQ(a.losses.size(), 5u);
  for (double loss : a.losses)
    EXPECT_TRUE(std::isfinite(loss));
  for (double sum : a.square_sums)
    EXPECT_TRUE(std::isfinite(sum) && sum > 0);
  ShapeOptions o = shape();
  o.placing = Placing::gpu;
  ToyOptions once = serial(o);
  once.n_micro = {3};
  EXPECT_NE(run_toy(once).states, a.states);
}

TEST_P(SameBits, InEveryPlaceOrderAndActivation) {
  const ToyResult expected = reference();
  for (Placing placing : kPlacings)
    for (AccumulationOrder order : kOrders)
      for (Activations activations : kActivations)
        for (bool layer_inputs_on_host : {false, true}) {
          ShapeOptions o = shape();
          o.placing = placing;
          o.order = order;
          o.activations = activations;
          o.layer_inputs_on_host = layer_inputs_on_host;
          if (!may_place(o)) continue;
          EXPECT_EQ(run_toy(serial(o)), expected)
              << "placing " << static_cast<int>(placing) << ", order " << static_cast<int>(order)
              << ", activations " << static_cast<int>(activations)
              << (layer_inputs_on_host ? ", layer inputs on the host" : "");
        }
}

TEST_P(SameBits, HoweverMuchOfHostMemoryIsPinned) {
  const ToyResult expected = reference();
  int seed = 0;
  for (const TestedDevice kind : kTestedDevices) {
    if (!why_none(kind).empty()) continue;
    for (const Placing placing : {Placing::host, Placing::mixed, Placing::states_on_gpu,
                                  Placing::weights_on_gpu, Placing::everything_on_drive})
      for (const int64_t pinned_bytes_max : {8 * kKiB, 50 * kKiB, 200 * kKiB}) {
        ShapeOptions o = shape();
        o.placing = placing;
        o.order = kOrders[seed % 2];
        o.activations = seed % 3 == 0 ? Activations::host : Activations::keep;
        o.layer_inputs_on_host = seed % 4 < 2;
        if (!may_place(o)) continue;
        ToyOptions options = serial(o);
        options.make_device = [&](WorkerPool& pool) {
          return make_device(kind, pool,
                             {.seed = static_cast<uint64_t>(++seed),
                              .poison = true,
                              .pinned_bytes_max = pinned_bytes_max});
        };
        EXPECT_EQ(run_toy(options), expected)
            << name_of(kind) << ", placing " << static_cast<int>(placing) << ", "
            << pinned_bytes_max << " bytes pinned";
      }
  }
}

constexpr Frozen kFrozen[] = {Frozen::first_blocks, Frozen::middle_block,
                              Frozen::all_but_embeddings, Frozen::second_tensors};

TEST_P(SameBits, WithFrozenTensorsToo) {
  for (Frozen frozen : kFrozen)
    for (bool tied : {true, false}) {
      ShapeOptions o = shape();
      o.frozen = frozen;
      o.tied = tied;
      o.placing = Placing::gpu;
      const ToyResult expected = run_toy(serial(o));
      for (double sum : expected.square_sums)
        EXPECT_TRUE(std::isfinite(sum) && sum > 0);
      for (int seed = 0; seed < n_seeds(); ++seed) {
        o.placing = kPlacings[seed % 7];
        o.order = kOrders[seed / 3 % 2];
        o.n_state_slots = 1 + seed % 3;
        o.activations = kActivations[seed / 2 % 3];
        o.mixed_activations = seed % 4 == 3;
        o.layer_inputs_on_host = seed / 2 % 2 == 1;
        ToyOptions options = with_seed(o, seed);
        options.overlap = seed % 5 != 4;
        EXPECT_EQ(run_toy(options), expected)
            << "frozen " << static_cast<int>(frozen) << ", seed " << seed;
      }
    }
}

TEST_P(SameBits, AFrozenTensorChangesNoBitAndHasNoPartInTheNorm) {
  ShapeOptions o = shape();
  o.tied = false;  // then a step's gradients do not depend on what is frozen
  ToyRun whole({.shape = make_shape(o)});
  whole.step(3);
  whole.executor().settle();
  const std::vector<double> sums = whole.square_sums();
  for (Frozen frozen : kFrozen) {
    o.frozen = frozen;
    const StepShape its = make_shape(o);
    ToyRun run({.shape = its});
    const auto before = run.tensors();
    const double square_sum = run.step(3).square_sum;
    run.executor().settle();
    const auto after = run.tensors();
    double expected = 0;
    size_t at = 0, n_frozen = 0;
    for (const BlockShape& block : its.blocks)
      for (const TensorExtent& t : block.tensors) {
        EXPECT_EQ(after[at] == before[at], !t.trainable) << block.name;
        n_frozen += !t.trainable;
        expected += t.trainable ? sums[at] : 0;
        ++at;
      }
    EXPECT_GT(n_frozen, 0u);
    // Chunks of the norm go over the ends of tensors.
    EXPECT_NEAR(square_sum, expected, 1e-13 * expected) << "frozen " << static_cast<int>(frozen);
  }
}

/** `little` computes the same on a device with just the bytes of its layout, where `whole` does not
 * fit. */
void expect_smaller(ToyOptions little, ToyOptions whole, const ToyResult& expected) {
  const int64_t most = make_layout(little.shape).n_bytes[Place::device];
  little.device.gpu_capacity_bytes = whole.device.gpu_capacity_bytes = most;
  EXPECT_EQ(run_toy(little), expected);
  EXPECT_THROW(run_toy(whole), Error);
  little.device.gpu_capacity_bytes = most - 1;
  EXPECT_THROW(run_toy(little), Error) << "the layout has no byte to spare";
}

TEST_P(SameBits, FrozenBlocksFitADeviceThatIsTooSmallForTheWhole) {
  ShapeOptions o = shape();
  o.placing = Placing::gpu;
  ToyOptions whole = serial(o);
  o.frozen = Frozen::first_blocks;
  ToyOptions frozen = serial(o);
  const ToyResult expected = run_toy(frozen);
  expect_smaller(frozen, whole, expected);
}

TEST_P(SameBits, UnderAdversarialOrders) {
  const ToyResult expected = reference();
  for (int seed = 0; seed < n_seeds(); ++seed)
    for (AccumulationOrder order : kOrders)
      for (Placing placing :
           {Placing::host, Placing::mixed, Placing::weights_on_gpu, Placing::states_on_gpu,
            Placing::states_and_grads_on_gpu, Placing::drive, Placing::all_on_drive}) {
        ShapeOptions o = shape();
        o.n_state_slots = 1 + seed % 4;
        o.placing = placing;
        o.order = order;
        o.activations = kActivations[seed % 3];
        o.mixed_activations = seed % 4 == 3;
        o.n_weight_slots = 1 + seed % 4;
        o.n_grad_slots = 1 + seed / 2 % 3;
        o.n_saved_slots = 1 + seed / 3 % 3;
        ToyOptions options = with_seed(o, seed);
        options.overlap = seed % 5 != 4;
        EXPECT_EQ(run_toy(options), expected) << "seed " << seed;
      }
}

TEST_P(SameBits, WithGradientsOnADriveUnderAdversarialOrders) {
  for (const bool clips : {true, false})
    for (const bool tied : {true, false})
      for (const int n_micro_max : {1, 3}) {
        ShapeOptions o = shape();
        o.tied = tied;
        o.n_micro_max = n_micro_max;
        o.placing = Placing::gpu;
        ToyOptions resident = serial(o);
        resident.clips = clips;
        if (n_micro_max == 1) resident.n_micro = {1, 1, 1, 1};
        const ToyResult expected = run_toy(resident);
        for (int seed = 0; seed < n_seeds(); ++seed)
          for (Placing placing : kGradPlacings) {
            o.placing = placing;
            o.order = n_micro_max > 1 ? AccumulationOrder::vertical : kOrders[seed % 2];
            o.activations = kActivations[seed % 3];
            o.some_update_late = seed % 3 == 2;
            o.n_state_slots = 1 + seed % 4;
            o.n_grad_slots = 1 + seed / 2 % 3;
            o.n_grad_windows = 1 + seed / 3 % 3;
            o.state_piece_elements = 512 * (1 + seed % 5);
            ToyOptions options = with_seed(o, seed);
            options.clips = clips;
            options.n_micro = resident.n_micro;
            options.overlap = seed % 5 != 4;
            ToyRun run(options);
            for (int n_micro : options.n_micro)
              run.step(n_micro);
            EXPECT_EQ(run.result(), expected)
                << "seed " << seed << ", placing " << static_cast<int>(placing);
            EXPECT_GT(count_of(ExecutorProbe::training_list(run.executor(), 1), Verb::write_grads),
                      3u);
          }
      }
}

TEST_P(SameBits, WithLayerInputsOnTheHostUnderAdversarialOrders) {
  ShapeOptions o = shape();
  o.placing = Placing::gpu;
  o.n_layers = 7;
  const ToyResult expected = run_toy(serial(o));
  o.layer_inputs_on_host = true;
  for (int seed = 0; seed < n_seeds(); ++seed)
    for (AccumulationOrder order : kOrders)
      for (Activations activations : kActivations) {
        o.placing = kPlacings[seed % 5];
        o.order = order;
        o.activations = activations;
        o.mixed_activations = seed % 4 == 3;
        o.n_layer_input_slots = 2 + seed / 2 % 5;
        o.n_weight_slots = 1 + seed % 4;
        ToyOptions options = with_seed(o, seed);
        options.overlap = seed % 5 != 4;
        EXPECT_EQ(run_toy(options), expected)
            << "seed " << seed << ", order " << static_cast<int>(order) << ", activations "
            << static_cast<int>(activations);
      }
}

// The lists of steps with other numbers of micro-batches have other actions at the same place, and
// a step begins under the updates of the one before.
TEST_P(SameBits, WhereStepsOfOtherSizesFollowUnderUpdates) {
  ShapeOptions o = shape();
  o.placing = Placing::gpu;
  o.n_layers = 7;
  const ToyResult expected = run_toy(serial(o));
  o.placing = Placing::mixed;
  o.order = AccumulationOrder::vertical;
  o.layer_inputs_on_host = true;
  o.n_weight_slots = 1;
  o.n_layer_input_slots = 3;
  for (int seed = 0; seed < 5 * n_seeds(); ++seed)
    EXPECT_EQ(run_toy(with_seed(o, seed)), expected) << "seed " << seed;
}

TEST_P(SameBits, WithLayerInputsOnTheHostADeviceTooSmallForThemAll) {
  ShapeOptions o = shape();
  o.placing = Placing::gpu;
  o.activations = Activations::recompute;
  o.n_layers = 9;
  ToyOptions whole = serial(o);
  const ToyResult expected = run_toy(whole);
  o.layer_inputs_on_host = true;
  ToyOptions slots = serial(o);
  expect_smaller(slots, whole, expected);
}

TEST_P(SameBits, WithThreads) {
  const ToyResult expected = reference();
  for (int i = 0; i < (std::getenv("FERRY_LONG") ? 60 : 6); ++i) {
    ShapeOptions o = shape();
    o.order = kOrders[i / 2 % 2];
    o.placing = i % 3 == 2   ? Placing::everything_on_drive
                : i % 3 == 1 ? Placing::mixed
                             : Placing::host;
    if (!may_place(o)) o.placing = Placing::drive;
    o.mixed_activations = true;
    o.layer_inputs_on_host = i % 3 == 1;
    ToyOptions options = serial(o);
    options.device.mode = SimulatedMode::threads;
    options.n_workers = 1 + i % 2;
    options.overlap = i % 3 != 2;
    EXPECT_EQ(run_toy(options), expected) << "run " << i;
  }
}

TEST_P(SameBits, WithAnyNumberOfWorkers) {
  ShapeOptions o = shape();
  o.large_tensor_elements = 3 * simd::kTask_elements + 1234;
  o.n_micro_max = 2;
  ToyOptions options = serial(o);
  options.n_micro = {2, 1};
  options.n_workers = 1;
  const ToyResult expected = run_toy(options);
  for (int n_workers : {2, 7}) {
    options.n_workers = n_workers;
    EXPECT_EQ(run_toy(options), expected) << n_workers << " workers";
  }
  options.device.mode = SimulatedMode::threads;
  EXPECT_EQ(run_toy(options), expected) << "threads";
}

TEST_P(SameBits, WithTheTbbPool) {
  if (kThreadSanitizer) GTEST_SKIP() << "oneTBB is not instrumented for the thread sanitizer";
  ShapeOptions o = shape();
  o.large_tensor_elements = 3 * simd::kTask_elements + 1234;
  o.n_micro_max = 2;
  o.placing = Placing::mixed;
  ToyOptions options = serial(o);
  options.n_micro = {2, 1};
  const ToyResult expected = run_toy(options);
  options.pool = Pool::tbb;
  for (SimulatedMode mode : {SimulatedMode::serial, SimulatedMode::threads})
    for (int n_workers : {1, 2, 7}) {
      options.device.mode = mode;
      options.n_workers = n_workers;
      EXPECT_EQ(run_toy(options), expected) << n_workers << " workers";
    }
}

TEST_P(SameBits, WhetherGradientsAreSummedOrNot) {
  // One micro-batch a step: gradients stay in the compute type, or go through the fp32 sum.
  for (bool tied : {false, true}) {
    ShapeOptions o = shape();
    o.placing = Placing::gpu;
    o.tied = tied;
    ToyOptions options = serial(o);
    options.n_micro = {1, 1, 1, 1};
    const ToyResult expected = run_toy(options);
    for (int n_micro_max : {1, 4})
      for (Placing placing : kPlacings)
        for (AccumulationOrder order : kOrders) {
          o.n_micro_max = n_micro_max;
          o.placing = placing;
          o.order = order;
          for (int seed = 0; seed < 3; ++seed) {
            if (!may_place(o)) continue;
            options = with_seed(o, seed);
            options.n_micro = {1, 1, 1, 1};
            EXPECT_EQ(run_toy(options), expected) << n_micro_max << " micro-batches at most";
          }
        }
  }
}

TEST_P(SameBits, WithAnEvaluationBetweenSteps) {
  ShapeOptions o = shape();
  o.placing = Placing::gpu;
  ToyOptions options = serial(o);
  options.evaluate_after = 1;
  const ToyResult expected = run_toy(options);
  ASSERT_EQ(expected.evaluations.size(), 1u);
  EXPECT_TRUE(std::isfinite(expected.evaluations[0]));
  EXPECT_EQ(expected.states, reference().states);
  for (Placing placing : {Placing::host, Placing::mixed, Placing::states_on_gpu})
    for (Activations activations : kActivations)
      for (int seed = 0; seed < n_seeds(); ++seed) {
        o.placing = placing;
        o.activations = activations;
        o.order = kOrders[seed % 2];
        o.layer_inputs_on_host = seed / 2 % 2 == 1;
        options = with_seed(o, seed);
        options.evaluate_after = 1;
        EXPECT_EQ(run_toy(options), expected) << "seed " << seed;
      }
}

TEST_P(SameBits, WhenOnlyEvaluating) {
  ShapeOptions o = shape();
  o.placing = Placing::gpu;
  ToyRun trained(serial(o));
  const double expected = trained.evaluate();
  o.trains = false;
  for (Placing placing : kPlacings)
    for (Activations activations : kActivations)
      for (int seed = 0; seed < 3; ++seed) {
        o.placing = placing;
        o.activations = activations;
        o.layer_inputs_on_host = seed == 2;
        ToyRun run(with_seed(o, seed));
        EXPECT_EQ(run.evaluate(), expected);
      }
}

TEST_P(SameBits, WithoutClippingUnderTheBackward) {
  ShapeOptions o = shape();
  o.placing = Placing::gpu;
  ToyOptions serially = serial(o);
  serially.clips = false;
  const ToyResult expected = run_toy(serially);
  EXPECT_NE(expected.states, reference().states);
  for (Placing placing : kPlacings)
    for (bool tied : {true, false})
      for (int seed = 0; seed < n_seeds(); ++seed) {
        o.placing = placing;
        o.tied = tied;
        o.order = kOrders[seed % 2];
        o.activations = kActivations[seed / 2 % 3];
        o.layer_inputs_on_host = seed / 3 % 2 == 1;
        o.some_update_late = seed % 3 == 2;
        if (!may_place(o)) continue;
        ToyOptions options = with_seed(o, seed);
        options.clips = false;
        options.overlap = seed % 5 != 4;
        if (tied) {
          EXPECT_EQ(run_toy(options), expected) << "seed " << seed;
          continue;
        }
        ToyOptions untied = serially;
        ShapeOptions untied_shape = shape();
        untied_shape.placing = Placing::gpu;
        untied_shape.tied = false;
        untied.shape = make_shape(untied_shape);
        EXPECT_EQ(run_toy(options), run_toy(untied)) << "untied, seed " << seed;
      }
}

/** Without clipping no other block waits for it. */
TEST_P(SameBits, ABlockWhoseGradientsAreNotFiniteStaysAsItIs) {
  constexpr int kBad = 2;
  std::vector<std::vector<std::byte>> expected;
  for (Placing placing : kPlacings)
    for (AccumulationOrder order : kOrders)
      for (int seed = 0; seed < 4; ++seed) {
        ShapeOptions o = shape();
        o.placing = placing;
        o.order = order;
        o.some_update_late = seed % 2 == 1;
        if (!may_place(o)) continue;
        ToyOptions options = with_seed(o, seed);
        options.clips = false;
        ToyRun run(options);
        run.step(3);
        run.executor().settle();
        const auto before = run.tensors();
        run.work().after_backward = [&](const Action& action, const PassMemory& memory) {
          if (action.block == kBad && action.micro == 1)
            std::memset(memory.grads, 0xff, size_of(GetParam().compute));  // NaN
        };
        const StepOutcome outcome = run.step(3);
        EXPECT_FALSE(std::isfinite(outcome.square_sum));
        EXPECT_FALSE(outcome.decision.skip);
        run.executor().settle();
        const auto after = run.tensors();
        size_t at = 0;
        for (int b = 0; b < options.shape.n_blocks(); ++b)
          for (size_t t = 0; t < options.shape.blocks[b].tensors.size(); ++t) {
            EXPECT_EQ(before[at] == after[at], b == kBad) << "block " << b << ", tensor " << t;
            ++at;
          }
        run.work().after_backward = {};
        run.step(3);
        run.executor().settle();
        if (expected.empty()) expected = run.tensors();
        EXPECT_EQ(run.tensors(), expected)
            << "placing " << static_cast<int>(placing) << ", seed " << seed;
      }
}

TEST_P(SameBits, AfterASkippedStepNothingHasChanged) {
  for (Placing placing : kPlacings) {
    ShapeOptions o = shape();
    o.placing = placing;
    if (!may_place(o)) o.order = AccumulationOrder::vertical;
    ToyOptions options = serial(o);
    options.skipped_step = 2;
    ToyRun run(options);
    run.step(3);
    run.step(3);
    const std::vector<std::byte> before = run.result().states;
    EXPECT_TRUE(run.step(3).decision.skip);
    EXPECT_EQ(run.result().states, before);
    run.step(3);
    EXPECT_NE(run.result().states, before);
  }
}

INSTANTIATE_TEST_SUITE_P(, SameBits, testing::ValuesIn(kToyKinds), [](const auto& info) {
  return text_of(info.param);
});

}  // namespace
}  // namespace ferry::test
