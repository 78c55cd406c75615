// Simulated steps against what the formulas of overlap allow.

#include "src/plan/cost/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "src/base/error.h"
#include "tests/plan/search/even_plans.h"

namespace ferry::test {
namespace {

// With clipping the update hides under the next forward: t = t_bwd + max(t_fwd, t_cpu), and the
// first block's update, copy and forward stand alone.
TEST(Simulation, WithClippingIsTheFormula) {
  const ModelTable model = bert(1024, 24);
  for (double adamw : {2e9, 5e9, 20e9, 100e9}) {
    const MachineProfile machine = even_machine({.update_params_per_s = adamw});
    const Plan plan = all_on_host(model, machine, true);
    const CostModel cost(machine, true, model, plan.shape, plan.largest);
    double forward_s = 0, backward_s = 0, update_s = 0;
    for (const Action& action : make_training_list(plan.shape, plan.layout, 1)) {
      if (action.verb == Verb::forward) forward_s += cost.seconds(action);
      if (action.verb == Verb::backward) backward_s += cost.seconds(action);
      if (action.verb == Verb::update) update_s += cost.seconds(action);
    }
    const double formula_s = backward_s + std::max(forward_s, update_s);
    EXPECT_GE(plan.predicted->step_s, formula_s * 0.999) << adamw;
    EXPECT_LE(plan.predicted->step_s, formula_s * 1.06) << adamw;
  }
}

// Without, it hides under the backward too: t = max(t_gpu, t_cpu) as far as the order allows.
TEST(Simulation, WithoutClippingIsTheSlowestResource) {
  const ModelTable model = bert(1024, 24);
  for (double adamw : {2e9, 4e9, 5e9, 20e9}) {
    const Plan plan = all_on_host(model, even_machine({.update_params_per_s = adamw}), false);
    const double slowest_s = std::max(busy(plan, QueueId::compute), busy(plan, QueueId::host));
    EXPECT_GE(plan.predicted->step_s, slowest_s * 0.999) << adamw;
    EXPECT_LE(plan.predicted->step_s, slowest_s * 1.1) << adamw;
  }
}

TEST(Simulation, OutputsOfBlocksOnTheHostCrossOnceEachWayBesideThePasses) {
  const ModelTable model = bert(1024, 24);
  const auto plan_with = [&](Place layer_inputs, const MachineProfile& machine) {
    PlanRequest request = on_gpu(machine, 200 * kGiB);
    request.placement = Place::device;
    request.activations = Activations::recompute;
    request.micro_batch_size = 32;
    request.layer_inputs = layer_inputs;
    return make_plan(model, request);
  };
  const MachineProfile machine = even_machine({.copy_bytes_per_s = 100e9});
  const Plan on_gpu_plan = plan_with(Place::device, machine);
  const Plan on_host = plan_with(Place::host, machine);
  // Embeddings and 24 layers have an output; three slots hold the last.
  const double bytes = 22.0 * 32 * 512 * 1024 * 2;
  for (QueueId queue : {QueueId::d2h, QueueId::h2d})
    EXPECT_NEAR(busy(on_host, queue) - busy(on_gpu_plan, queue), bytes / 100e9,
                0.05 * bytes / 100e9);
  EXPECT_LE(on_host.predicted->step_s, on_gpu_plan.predicted->step_s * 1.01);
  const PlanRequest request = on_gpu(machine, 200 * kGiB);
  const Simulation traced = simulate_plan(model, request, on_host, /*keeps_actions=*/true);
  for (Verb verb : {Verb::send_layer_input, Verb::fetch_layer_input})
    EXPECT_EQ(
        std::ranges::count_if(traced.actions,
                              [&](const TimedAction& a) { return a.verb == verb && a.step == 1; }),
        22)
        << name_of(verb);
  // Slow copies are what such a step takes.
  const Plan slow = plan_with(Place::host, even_machine({.copy_bytes_per_s = 2e9}));
  EXPECT_GE(slow.predicted->step_s, 2 * bytes / 2e9 * 0.9);
}

TEST(Simulation, MakingTheLargestTensorAgainTakesItsProductAndLessThanAWholeForward) {
  const ModelTable model = bert(1024, 24);
  const MachineProfile machine = even_machine({});
  const auto plan_with = [&](Activations activations) {
    PlanRequest request = on_gpu(machine, 200 * kGiB);
    request.placement = Place::device;
    request.activations = activations;
    request.micro_batch_size = 32;
    return make_plan(model, request);
  };
  const Plan keep = plan_with(Activations::keep), selective = plan_with(Activations::selective),
             recompute = plan_with(Activations::recompute);
  const double product_s = busy(selective, QueueId::compute) - busy(keep, QueueId::compute);
  const double forward_s = busy(recompute, QueueId::compute) - busy(keep, QueueId::compute);
  // A third of a layer's products by weights; attention and memory besides are the forward's alone.
  EXPECT_GT(product_s, 0.25 * forward_s);
  EXPECT_LT(product_s, 0.4 * forward_s);
}

TEST(Simulation, CopiesBindWhereTheyAreSlow) {
  const ModelTable model = bert(1024, 24);
  const Plan plan = all_on_host(
      model, even_machine({.copy_bytes_per_s = 5e9, .update_params_per_s = 100e9}), true);
  EXPECT_EQ(plan.predicted->binding(), QueueId::h2d);
  EXPECT_GE(plan.predicted->step_s, busy(plan, QueueId::h2d));
}

TEST(Simulation, SharingTheHostsMemoryTakesLonger) {
  const ModelTable model = bert(1024, 24);
  const MachineRates rates = {.update_params_per_s = 4e9};
  MachineRates shared = rates;
  shared.shared = 0.6;
  for (bool clips : {true, false})
    EXPECT_GT(all_on_host(model, even_machine(shared), clips).predicted->step_s,
              all_on_host(model, even_machine(rates), clips).predicted->step_s * 1.01);
}

// Twice the texts on two GPUs: where the host's updates bind, one host gains nothing by the second
// GPU, and two hosts have twice the cores.
TEST(Simulation, RanksOfAHostShareItsUpdates) {
  const ModelTable model = bert(1024, 24);
  MachineProfile machine = even_machine({.flops_per_s = 4e15, .update_params_per_s = 1e9});
  machine.gpu->exchange = {
      .has_peer_access = true, .bytes_per_s = 1e15, .network_bytes_per_s = 1e15};
  // So many that the cores which submit the GPUs' work are few of them.
  machine.host.n_threads = machine.host.updates[0].n_threads = 128;
  const auto step_s = [&](int world, int n_per_host) {
    PlanRequest request = on_gpu(machine, 200 * kGiB);
    request.placement = Place::host;
    request.train_batch_size = 32 * world;
    request.micro_batch_size = 32;
    request.world = world;
    request.n_per_host = n_per_host;
    return make_plan(model, request).predicted->step_s;
  };
  const double alone_s = step_s(1, 1);
  EXPECT_NEAR(step_s(2, 2) / alone_s, 1, 0.15) << "each updates half, with half of the cores";
  EXPECT_NEAR(step_s(4, 4) / alone_s, 1, 0.15);
  EXPECT_NEAR(step_s(2, 1) / alone_s, 0.5, 0.1);
  EXPECT_NEAR(step_s(4, 2) / alone_s, 0.5, 0.1);
}

/** A machine whose GPUs' computing binds, whatever is split. */
MachineProfile machine_of_ranks(double exchange_bytes_per_s) {
  MachineProfile machine = even_machine({.copy_bytes_per_s = 1e15, .update_params_per_s = 1e15});
  machine.gpu->exchange = {.has_peer_access = true, .bytes_per_s = exchange_bytes_per_s};
  return machine;
}
PlanRequest request_of_ranks(const MachineProfile& machine, int world, int64_t n_micro) {
  PlanRequest request = on_gpu(machine, 200 * kGiB);
  request.train_batch_size = 16 * n_micro;
  request.micro_batch_size = 16;
  request.world = world;
  return request;
}

/** However many micro-batches a simulation stands for, ranks with as many each take as long. */
TEST(Simulation, ManyRanksTakeAsLongAsOneWithTheMicroBatchesOfOne) {
  const ModelTable model = bert(1024, 24);
  const MachineProfile machine = machine_of_ranks(1e15);
  const auto step_s = [&](int world, int64_t n_micro_each) {
    PlanRequest request = request_of_ranks(machine, world, world * n_micro_each);
    request.n_stages = 1;
    request.reduction = Reduction::ordered;
    return make_plan(model, request).predicted->step_s;
  };
  for (int64_t n_each : {1, 3, 40})
    for (int world : {3, 16, 64})
      EXPECT_NEAR(step_s(world, n_each) / step_s(1, n_each), 1, 0.1)
          << world << " ranks, " << n_each << " micro-batches each";
}

// Ranks that share a micro-batch have less work each, and exchange within its passes.
TEST(Simulation, RanksThatShareAMicroBatchTakeAsLongAsTheirLinksAllow) {
  const auto step_s = [](const Sharing& sharing, double exchange_bytes_per_s) {
    const ModelTable model = bert(1024, 24, HeadKind::masked_lm, 1024, sharing);
    const MachineProfile machine = machine_of_ranks(exchange_bytes_per_s);
    PlanRequest request = request_of_ranks(machine, sharing.n_ranks(), 1);
    request.n_stages = 1;
    request.reduction = Reduction::ordered;
    const Plan plan = make_plan(model, request);
    EXPECT_EQ(plan.n_micro, sharing.n_ranks());
    EXPECT_EQ(plan.shape.n_micro_max, 1);
    EXPECT_EQ(whole_batch(model, plan.largest).tokens, 16 * request.max_length);
    return plan.predicted->step_s;
  };
  const double alone_s = step_s({}, 1e15);
  for (const auto& [two, four] : {std::pair(Sharing{.sp_size = 2}, Sharing{.sp_size = 4}),
                                  std::pair(Sharing{.tp_size = 2}, Sharing{.tp_size = 4})}) {
    EXPECT_NEAR(step_s(two, 1e15) / alone_s, 0.5, 0.12);
    EXPECT_NEAR(step_s(four, 1e15) / alone_s, 0.25, 0.12);
    EXPECT_GT(step_s(two, 1e9), 2 * alone_s);
  }
}

// With the blocks split, ranks wait for each other at the ends of a step, or all the time where
// there are fewer micro-batches than ranks.
TEST(Simulation, RanksWaitForWhatTheBlocksBeforeTheirsLeave) {
  const ModelTable model = bert(1024, 24);
  const MachineProfile machine = machine_of_ranks(1e15);
  const auto step_s = [&](int world, int64_t n_micro) {
    PlanRequest request = request_of_ranks(machine, world, n_micro);
    if (world > 1) request.n_stages = world;
    return make_plan(model, request).predicted->step_s;
  };
  EXPECT_NEAR(step_s(2, 1) / step_s(1, 1), 1, 0.1) << "one of two always waits";
  EXPECT_NEAR(step_s(2, 8) / step_s(1, 8), 0.5, 0.1);
  EXPECT_NEAR(step_s(4, 2) / step_s(1, 2), 0.5, 0.1) << "two of four always wait";
  EXPECT_NEAR(step_s(4, 16) / step_s(1, 16), 0.25, 0.07);
}

// The values between blocks are smaller than the weights where there are few tokens.
TEST(Simulation, SlowLinksBetweenGpusHaveTheBlocksSplit) {
  const ModelTable model = bert(1024, 24);
  const auto plan_of = [&](double exchange_bytes_per_s, std::optional<int> n_stages) {
    const MachineProfile machine = machine_of_ranks(exchange_bytes_per_s);
    PlanRequest request = request_of_ranks(machine, 2, 4);
    request.train_batch_size = 8;
    request.micro_batch_size = 2;
    request.n_stages = n_stages;
    return make_plan(model, request);
  };
  EXPECT_TRUE(plan_of(5e9, {}).shape.deals_blocks());
  EXPECT_TRUE(plan_of(1e15, {}).shape.cuts_blocks());
  EXPECT_TRUE(plan_of(1e15, 2).shape.deals_blocks());
  EXPECT_TRUE(plan_of(5e9, 1).shape.cuts_blocks());
  EXPECT_LT(plan_of(5e9, {}).predicted->step_s, plan_of(5e9, 1).predicted->step_s);
}

// The ends of a step, where stages wait for each other, are as long with many micro-batches as with
// few.
TEST(Simulation, APipelineWaitsLessTheMoreMicroBatchesFollow) {
  const ModelTable model = bert(1024, 46);
  const MachineProfile machine = machine_of_ranks(1e15);
  const auto step_s = [&](int n_stages, int64_t n_micro) {
    PlanRequest request = request_of_ranks(machine, n_stages, n_micro);
    request.n_stages = n_stages;
    request.order = AccumulationOrder::horizontal;
    return make_plan(model, request).predicted->step_s;
  };
  const auto lost = [&](int64_t n_micro) {
    return 2 * step_s(2, n_micro) / step_s(1, n_micro) - 1;
  };
  EXPECT_LT(lost(128), 0.06);
  EXPECT_LT(lost(128), lost(16));
}

/** A rank sends nothing to itself, whichever stage it is in. */
TEST(Simulation, AllStagesExchangeTheirGradientsInTheSameTime) {
  const ModelTable model = bert(1024, 6);
  const MachineProfile machine = machine_of_ranks(1e9);
  PlanRequest request = request_of_ranks(machine, 4, 4);
  request.n_stages = 2;
  const Plan plan = make_plan(model, request);
  const CostModel cost(machine, /*gpu=*/true, model, plan.shape, plan.typical);
  StepShape shape = plan.shape;
  std::set<int64_t> times_us;
  int n_exchanges = 0;
  for (int stage = 0; stage < 2; ++stage) {
    shape.ranks.rank = shape.ranks.rank_at(stage, 0);
    for (const Action& action : make_training_list(shape, make_layout(shape), 4)) {
      if (action.verb != Verb::exchange_grads ||
          model.blocks[action.block].kind != BlockKind::layer)
        continue;
      times_us.insert(std::llround(1e6 * cost.seconds(action, 0, 0, shape.ranks.rank)));
      ++n_exchanges;
    }
  }
  EXPECT_EQ(n_exchanges, 6 * 2) << "each layer in two rounds";
  EXPECT_EQ(times_us.size(), 1u) << testing::PrintToString(times_us);
}

/** A plan is for the rank with the most bytes of each place. */
TEST(Simulation, EachRankHasRoomForItsBlocks) {
  const ModelTable model = bert(1024, 24);
  const MachineProfile machine = machine_of_ranks(1e15);
  PlanRequest request = request_of_ranks(machine, 3, 4);
  request.n_stages = 3;
  StepShape shape = make_plan(model, request).shape;
  const LayoutBytes most = layout_bytes(shape);
  PerPlace<int64_t> seen{};
  for (shape.ranks.rank = 0; shape.ranks.rank < 3; ++shape.ranks.rank) {
    const Layout layout = make_layout(shape);
    for (Place place : {Place::device, Place::host})
      seen[place] = std::max(seen[place], layout.n_bytes[place]);
  }
  EXPECT_EQ(seen[Place::device], most.n_bytes[Place::device]);
  EXPECT_EQ(seen[Place::host], most.n_bytes[Place::host]);
}

TEST(Simulation, SmallBlocksTakeAsLongAsTheirLaunches) {
  const ModelTable recorded = bert(256, 12);
  ModelTable launched = recorded;
  launched.attention = AttentionBackend::memory_efficient;  // which no graph is made of
  const auto step_s = [](const ModelTable& model, double launch_s) {
    MachineProfile machine = even_machine({});
    machine.gpu->launch_s = launch_s;
    PlanRequest request = on_gpu(machine, 40 * kGiB);
    request.max_length = 32;
    request.train_batch_size = 1;
    return make_plan(model, request).predicted->step_s;
  };
  EXPECT_GT(step_s(launched, 4e-6), 3 * step_s(launched, 0));
  EXPECT_NEAR(step_s(launched, 8e-6), 2 * step_s(launched, 4e-6), 0.2 * step_s(launched, 4e-6));
  // A layer that is replayed as a graph has two launches; head and embeddings have theirs.
  EXPECT_LT(step_s(recorded, 8e-6), step_s(launched, 8e-6) / 2);
  EXPECT_GT(step_s(recorded, 8e-6), step_s(recorded, 0));
}

TEST(Simulation, LaunchesHideBehindWhatTheGpuStillDoes) {
  ModelTable model = bert(1024, 24);
  model.attention = AttentionBackend::memory_efficient;  // which no graph is made of
  const auto step_s = [&](double flops_per_s, double launch_s) {
    MachineProfile machine = even_machine(
        {.flops_per_s = flops_per_s, .copy_bytes_per_s = 1e15, .update_params_per_s = 1e15});
    machine.gpu->launch_s = launch_s;
    return all_on_host(model, machine, true).predicted->step_s;
  };
  // The head's are a hundred times what it computes; before them the layers' are far ahead.
  EXPECT_LE(step_s(400e12, 4e-6), step_s(400e12, 0) * 1.01);
  EXPECT_GT(step_s(40'000e12, 4e-6), step_s(40'000e12, 0) * 2);
}

// Five of sixteen micro-batches have graphs, which put whoever submits far ahead; what a stream
// takes is a micro-batch's launches, and then each of the others takes as long as they do.
TEST(Simulation, NobodyGetsFurtherAheadThanAStreamTakesLaunches) {
  constexpr int kMicro = 16;
  const ModelTable recorded = bert(1024, 24);
  ModelTable launched = recorded;
  launched.attention = AttentionBackend::memory_efficient;
  const auto step_s = [&](const ModelTable& model, double flops_per_s, double launch_s) {
    MachineProfile machine = even_machine({.flops_per_s = flops_per_s});
    machine.gpu->launch_s = launch_s;
    PlanRequest request = on_gpu(machine, 200 * kGiB);
    request.train_batch_size = 128;
    request.micro_batch_size = 128 / kMicro;
    request.placement = Place::device;
    return make_plan(model, request).predicted->step_s;
  };
  const double computed_s = step_s(recorded, 400e12, 0) / kMicro,
               launched_s = step_s(launched, 1e18, 4e-6) / kMicro;
  ASSERT_GT(launched_s, 1.2 * computed_s);
  const double graphs = 256.0 / 48;
  const double all_s = graphs * computed_s + (kMicro - graphs) * launched_s;
  const double took_s = step_s(recorded, 400e12, 4e-6);
  EXPECT_LT(took_s, all_s);
  EXPECT_GT(took_s, all_s - 1.4 * launched_s);
}

/** A block's forward, and the same one before its backward where all is recomputed, read and write
 * the same memory. The first step records them, the second as many backwards as graphs are left. */
TEST(Simulation, AForwardThatIsDoneAgainIsTheSameGraph) {
  constexpr int kMicro = 8, kLayers = 24;
  const ModelTable model = bert(1024, kLayers);
  MachineProfile machine = even_machine({.flops_per_s = 1e18});
  machine.gpu->launch_s = 4e-6;
  PlanRequest request = on_gpu(machine, 200 * kGiB);
  request.train_batch_size = 8 * kMicro;
  request.micro_batch_size = 8;
  request.placement = Place::device;
  request.order = AccumulationOrder::horizontal;
  request.activations = Activations::recompute;
  const Plan plan = make_plan(model, request);
  ASSERT_EQ(plan.n_micro, kMicro);
  const CostModel cost(*request.machine, true, model, plan.shape, plan.typical);
  const StepList list =
      make_training_list(plan.shape, make_layout(plan.shape), kMicro, update_order_of(request));
  double submitted_s = 0;
  int n_forwards = 0, n_again = 0, n_backwards = 0;
  for (const Action& action : list) {
    if (action.queue != QueueId::compute) continue;
    const bool is_graph = cost.may_be_replayed(action);
    n_forwards += is_graph && action.verb == Verb::forward;
    n_again += is_graph && action.verb == Verb::recompute;
    n_backwards += is_graph && action.verb == Verb::backward;
    const bool is_replayed = is_graph && (action.verb != Verb::backward ||
                                          n_backwards <= kBlockGraphs_max - kMicro * kLayers);
    submitted_s += cost.submission(action, is_replayed).seconds;
  }
  EXPECT_EQ(n_forwards, kMicro * kLayers);
  EXPECT_EQ(n_again, n_forwards);
  EXPECT_EQ(n_backwards, n_forwards);
  EXPECT_NEAR(plan.predicted->step_s, submitted_s, 0.1 * submitted_s);
}

/** All states on a drive. */
Plan all_on_drive(const ModelTable& model, const MachineProfile& machine, bool clips) {
  Plan plan = all_on_host(model, machine, clips);
  for (BlockShape& block : plan.shape.blocks)
    block.place.states = Place::nvme;
  plan.shape.state_piece_elements = 2 << 20;
  plan.layout = make_layout(plan.shape);
  plan.predicted = simulate_plan(model, on_gpu(machine, 200 * kGiB, clips), plan);
  return plan;
}

// Reads run ahead of the updates and writes behind them: the drive is never idle but for passes
// that no update may go with.
TEST(Simulation, ADriveThatBindsTakesItsBytesByItsRates) {
  const ModelTable model = bert(1024, 24);
  const double bytes = 12.0 * static_cast<double>(model.n_trainable_params());
  for (const double mixed : {1.5e9, 2e9, 3.5e9})
    for (const bool clips : {true, false}) {
      const MachineProfile machine = with_drive(
          even_machine({.flops_per_s = 4e15, .update_params_per_s = 10e9}), 7e9, 5e9, mixed);
      const Plan plan = all_on_drive(model, machine, clips);
      EXPECT_NEAR(plan.predicted->step_s, bytes / mixed, 0.06 * bytes / mixed)
          << mixed << ", clips " << clips;
      EXPECT_NEAR(busy(plan, QueueId::nvme_read), bytes / mixed, 0.06 * bytes / mixed);
      const QueueId binding = plan.predicted->binding();
      EXPECT_TRUE(binding == QueueId::nvme_read || binding == QueueId::nvme_write);
      EXPECT_LE(plan.predicted->least_drive_s, plan.predicted->step_s);
    }
}

TEST(Simulation, AFastDriveHidesBehindTheUpdates) {
  const ModelTable model = bert(1024, 24);
  const MachineProfile machine =
      with_drive(even_machine({.update_params_per_s = 1e9}), 100e9, 100e9, 100e9);
  const Plan on_host = all_on_host(model, machine, true),
             on_drive = all_on_drive(model, machine, true);
  EXPECT_NEAR(on_drive.predicted->step_s, on_host.predicted->step_s,
              0.06 * on_host.predicted->step_s);
  EXPECT_EQ(on_drive.predicted->binding(), QueueId::host);
}

// The first reads of a step follow the commit of the step before.
TEST(Simulation, ACommitEndsEachStepOnTheDrive) {
  const ModelTable model = bert(1024, 6);
  const auto step_s = [&](double flush_s) {
    MachineProfile machine = with_drive(even_machine({.flops_per_s = 4e15}), 7e9, 5e9, 2e9);
    machine.nvme.front().flush_s = flush_s;
    return all_on_drive(model, machine, true).predicted->step_s;
  };
  EXPECT_NEAR(step_s(0.5) - step_s(0.1), 0.8, 0.02);
}

TEST(Simulation, OnACpuADriveIsInTheSum) {
  const ModelTable model = bert(256, 2);
  PlanRequest request;
  request.machine = with_drive(even_machine({.flops_per_s = 1e12}));
  Plan plan = make_plan(model, request);
  const double in_memory_s = plan.predicted->step_s;
  for (BlockShape& block : plan.shape.blocks)
    block.place = {Place::device, Place::nvme, Place::device};
  plan.layout = make_layout(plan.shape);
  const Simulation simulation = simulate_plan(model, request, plan);
  const double drive_s =
      simulation.busy_s[QueueId::nvme_read] + simulation.busy_s[QueueId::nvme_write];
  EXPECT_NEAR(drive_s,
              12.0 * static_cast<double>(model.n_trainable_params()) * (1 / 7e9 + 1 / 5e9) + 2e-3,
              0.1 * drive_s);
  EXPECT_NEAR(simulation.step_s, in_memory_s + drive_s, 0.1 * drive_s);
}

TEST(Simulation, OnACpuIsTheSum) {
  const ModelTable model = bert(256, 2);
  MachineProfile machine = even_machine({.flops_per_s = 1e12});
  PlanRequest request;
  request.machine = machine;
  const Plan plan = make_plan(model, request);
  EXPECT_NEAR(plan.predicted->step_s,
              std::accumulate(plan.predicted->busy_s.begin(), plan.predicted->busy_s.end(), 0.0),
              1e-9);
}

/** Where the CPU's updates take as long as many micro-batches, and where they take as long as few.
 */
TEST(Simulation, OfManyMicroBatchesIsThatOfAll) {
  const ModelTable model = bert(1024, 24);
  int n_compared = 0;
  for (const double adamw : {0.2e9, 2e9, 20e9})
    for (const AccumulationOrder order :
         {AccumulationOrder::horizontal, AccumulationOrder::vertical})
      for (const bool clips : {true, false})
        for (const int64_t n_micro : {20, 48, 128}) {
          const MachineProfile machine =
              even_machine({.update_params_per_s = adamw, .shared = 0.8});
          PlanRequest request = on_gpu(machine, 6 * kGiB, clips);
          request.order = order;
          request.placement = Place::host;
          request.micro_batch_size = 1;
          request.train_batch_size = n_micro;
          const Plan plan = make_plan(model, request);
          ASSERT_EQ(plan.n_micro, n_micro);
          const CostModel cost(machine, true, model, plan.shape, plan.typical);
          const Simulation all =
              simulate_steps(cost, plan.shape, static_cast<int>(n_micro),
                             clips ? UpdateOrder::after_decision : UpdateOrder::as_grads_arrive,
                             /*serial=*/false);
          EXPECT_NEAR(plan.predicted->step_s, all.step_s, 0.03 * all.step_s)
              << plan.why << ", AdamW " << adamw << ", clips " << clips;
          // Copies take longer beside others, and meet others now.
          const auto compute = static_cast<size_t>(QueueId::compute);
          EXPECT_NEAR(plan.predicted->busy_s[compute], all.busy_s[compute],
                      0.02 * all.busy_s[compute]);
          ++n_compared;
        }
  EXPECT_EQ(n_compared, 36);
}

/** The same where submitting binds, or is hidden by some passes for others; with graphs, which the
 * first of them have, and without. */
TEST(Simulation, OfManyMicroBatchesIsThatOfAllTheirLaunches) {
  ModelTable model = bert(1024, 24);
  for (const AttentionBackend attention :
       {AttentionBackend::flash, AttentionBackend::memory_efficient})
    for (const AccumulationOrder order :
         {AccumulationOrder::horizontal, AccumulationOrder::vertical})
      for (const double flops_per_s : {150e12, 250e12, 400e12, 1e15})
        for (const int64_t n_micro : {14, 27, 32, 128, 512}) {
          model.attention = attention;
          MachineProfile machine = even_machine({.flops_per_s = flops_per_s});
          machine.gpu->launch_s = 4e-6;
          PlanRequest request = on_gpu(machine, 60 * kGiB);
          request.order = order;
          request.placement = Place::device;
          request.micro_batch_size = 2;
          request.train_batch_size = 2 * n_micro;
          const Plan plan = make_plan(model, request);
          const CostModel cost(machine, true, model, plan.shape, plan.typical);
          const double all_s = simulate_steps(cost, plan.shape, static_cast<int>(n_micro),
                                              UpdateOrder::after_decision, /*serial=*/false)
                                   .step_s;
          EXPECT_NEAR(plan.predicted->step_s, all_s, 0.035 * all_s)
              << plan.why << ", " << name_of(attention) << ", " << flops_per_s;
        }
}

TEST(Simulation, KeepsATraceOfTwoStepsInOrder) {
  const ModelTable model = bert(256, 4);
  const PlanRequest request = on_gpu(even_machine({}), 40 * kGiB);
  const Plan plan = make_plan(model, request);
  const auto actions = simulate_plan(model, request, plan, true).actions;
  EXPECT_EQ(actions.size(),
            2 * make_training_list(plan.shape, plan.layout, static_cast<int>(plan.n_micro)).size());
  std::array<double, kQueues> ended_s;
  ended_s.fill(-1e9);
  int n_of_second = 0;
  for (const TimedAction& action : actions) {
    double& last_s = ended_s[static_cast<size_t>(action.queue)];
    EXPECT_GE(action.begin_s, last_s) << action.name;
    EXPECT_GE(action.end_s, action.begin_s) << action.name;
    last_s = action.end_s;
    ASSERT_TRUE(action.step == 1 || action.step == 2);
    n_of_second += action.step == 2;
  }
  EXPECT_EQ(n_of_second, static_cast<int>(actions.size()) / 2);
}

TEST(Simulate, AShortLastMicroBatchTakesLess) {
  const ModelTable model = bert(1024, 6);
  const auto step_s = [&](int64_t batch) {
    PlanRequest request = on_gpu(even_machine({}), 60 * kGiB);
    request.train_batch_size = batch;
    request.micro_batch_size = 32;
    return make_plan(model, request).predicted->step_s;
  };
  EXPECT_LT(step_s(33), 1.2 * step_s(32));
  EXPECT_GT(step_s(33), step_s(32));
  EXPECT_LT(step_s(48), 0.9 * step_s(64));
}

}  // namespace
}  // namespace ferry::test
