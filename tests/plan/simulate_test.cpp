// Simulated steps against what the formulas of overlap allow, and the planner's choices by them.

#include "src/plan/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>

#include "models/bert/bert_table.h"
#include "src/base/error.h"
#include "src/plan/plan.h"
#include "tests/plan/machines.h"

namespace ferry::test {
namespace {

ModelTable bert(int64_t width, int n_layers, HeadKind head = HeadKind::classification) {
  const nlohmann::json json = {{"model_type", "bert"},
                               {"vocab_size", 1024},
                               {"hidden_size", width},
                               {"num_hidden_layers", n_layers},
                               {"num_attention_heads", width / 64},
                               {"intermediate_size", 4 * width},
                               {"max_position_embeddings", 512},
                               {"type_vocab_size", 2}};
  BertTableOptions options;
  options.head = head;
  options.compute = DType::bf16;
  options.attention = AttentionBackend::flash;
  return make_bert_table(parse_bert_config(json), options);
}

PlanRequest on_gpu(const MachineProfile& machine, int64_t gpu_bytes, bool clips = true) {
  PlanRequest request;
  request.has_gpu = true;
  request.gpu_budget_bytes = gpu_bytes;
  request.host_budget_bytes = 120 * kGiB;
  request.train_batch_size = 32;
  request.machine = machine;
  request.clips = clips;
  return request;
}

double busy(const Plan& plan, QueueId queue) {
  return plan.predicted->busy_s[static_cast<size_t>(queue)];
}

/** All on the host, one micro-batch, nothing recomputed. */
Plan all_on_host(const ModelTable& model, const MachineProfile& machine, bool clips) {
  PlanRequest request = on_gpu(machine, 200 * kGiB, clips);
  request.placement = Place::host;
  request.activations = Activations::keep;
  request.micro_batch_size = 32;
  return make_plan(model, request);
}

TEST(GemmRate, IsTheMeasuredOneAndBetweenItsNeighbours) {
  const std::vector<GemmRate> rates = {{DType::bf16, 1024, 1024, 100e12},
                                       {DType::bf16, 1024, 4096, 300e12},
                                       {DType::bf16, 16384, 1024, 400e12},
                                       {DType::bf16, 16384, 4096, 600e12},
                                       {DType::f32, 1024, 1024, 1e12}};
  EXPECT_NEAR(gemm_rate(rates, DType::bf16, {16384, 4096, 4096}), 600e12, 1e6);
  EXPECT_NEAR(gemm_rate(rates, DType::bf16, {16384, 1024, 1024}), 400e12, 1e6);
  // The gradient of the weights is the same work turned round.
  EXPECT_NEAR(gemm_rate(rates, DType::bf16, {1024, 16384, 1024}), 400e12, 1e6);
  const double between = gemm_rate(rates, DType::bf16, {16384, 1024, 4096});
  EXPECT_GT(between, 400e12);
  EXPECT_LT(between, 600e12);
  EXPECT_NEAR(gemm_rate(rates, DType::bf16, {1 << 20, 8192, 8192}), 600e12, 1e6);
  EXPECT_LT(gemm_rate(rates, DType::bf16, {16384, 256, 256}), 400e12);
  EXPECT_DOUBLE_EQ(gemm_rate(rates, DType::f32, {1024, 1024, 1024}), 1e12);
  EXPECT_DOUBLE_EQ(gemm_rate(rates, DType::f16, {1024, 1024, 1024}), 0);
}

TEST(Work, OfBertLargeIsWhatTheWorldCounts) {
  // 6 FLOPs a matrix parameter and token, and 12 * width * length of attention: 1.006 TFLOP a
  // sequence of 512.
  ModelTable model = bert(1024, 24);
  const BatchShape batch = {.tokens = 512, .n_seqs_max = 1, .max_length = 512};
  const StepShape shape = make_step_shape(model, batch, {}, 1);
  const MachineProfile machine = even_machine({});
  EXPECT_NEAR(CostModel(machine, true, model, shape, batch).step_flops(1), 1.006e12, 0.01e12);
}

// With clipping the update hides under the next forward: t = t_bwd + max(t_fwd, t_cpu), and the
// first block's update, copy and forward stand alone.
TEST(Simulation, WithClippingIsTheFormula) {
  const ModelTable model = bert(1024, 24);
  for (double adamw : {2e9, 5e9, 20e9, 100e9}) {
    const MachineProfile machine = even_machine({.adamw_params_per_s = adamw});
    const Plan plan = all_on_host(model, machine, true);
    const CostModel cost(machine, true, model, plan.shape, plan.largest);
    double forward_s = 0, backward_s = 0, update_s = 0;
    for (const Action& action : make_training_list(plan.shape, 1)) {
      if (action.verb == Verb::forward) forward_s += cost.seconds(action);
      if (action.verb == Verb::backward) backward_s += cost.seconds(action);
      if (action.verb == Verb::update_host) update_s += cost.seconds(action);
    }
    const double formula_s = backward_s + std::max(forward_s, update_s);
    EXPECT_GE(plan.predicted->step_s, formula_s * 0.999) << adamw;
    EXPECT_LE(plan.predicted->step_s, formula_s * 1.06) << adamw;
  }
}

// What an update takes is the bytes it moves: 28 a parameter, 20, 16, and 2 less with a split
// master.
TEST(Simulation, ReducedStatesUpdateByTheirBytes) {
  const ModelTable model = bert(1024, 24);
  for (const Place place : {Place::host, Place::gpu}) {
    // So slow that nothing else shows.
    MachineProfile machine = even_machine({.adamw_params_per_s = 1e6});
    machine.gpu->adamw_params_per_s = 1e6;
    const BatchShape batch = {.tokens = 512, .n_seqs_max = 1, .max_length = 512};
    const auto update_s = [&](simd::StateType states, bool split_master) {
      PlanRequest request;
      request.states = states;
      request.split_master = split_master;
      StepShape shape = make_step_shape(model, batch, request, 1);
      choose(shape, model, {.place = place});
      return CostModel(machine, true, model, shape, batch)
          .seconds(
              {.verb = place == Place::host ? Verb::update_host : Verb::update_gpu, .block = 1});
    };
    const double fp32 = update_s(simd::StateType::fp32, false);
    EXPECT_NEAR(update_s(simd::StateType::bf16, false) / fp32, 20.0 / 28, 1e-3);
    EXPECT_NEAR(update_s(simd::StateType::block8, false) / fp32, 16.0 / 28, 1e-3);
    EXPECT_NEAR(update_s(simd::StateType::fp32, true) / fp32, 26.0 / 28, 1e-3);
    EXPECT_NEAR(update_s(simd::StateType::block8, true) / fp32, 14.0 / 28, 1e-3);
  }
}

// Without, it hides under the backward too: t = max(t_gpu, t_cpu) as far as the order allows.
TEST(Simulation, WithoutClippingIsTheSlowestResource) {
  const ModelTable model = bert(1024, 24);
  for (double adamw : {2e9, 4e9, 5e9, 20e9}) {
    const Plan plan = all_on_host(model, even_machine({.adamw_params_per_s = adamw}), false);
    const double slowest_s = std::max(busy(plan, QueueId::compute), busy(plan, QueueId::host));
    EXPECT_GE(plan.predicted->step_s, slowest_s * 0.999) << adamw;
    EXPECT_LE(plan.predicted->step_s, slowest_s * 1.1) << adamw;
  }
}

TEST(Simulation, LeavesUpdatesForTheNextForwardWhereTheyAreSlow) {
  const ModelTable model = bert(1024, 24);
  const auto n_late = [&](double adamw) {
    const Plan plan = all_on_host(model, even_machine({.adamw_params_per_s = adamw}), false);
    return std::ranges::count_if(plan.shape.blocks, &BlockShape::updates_late);
  };
  EXPECT_GT(n_late(4.5e9), 2);
  EXPECT_EQ(n_late(50e9), 0);
}

// A machine's memory is not always as fast as when its profile was measured.
TEST(Simulation, LateUpdatesAreAsManyAsDoForSlowerOnesToo) {
  const ModelTable model = bert(1024, 24);
  for (double adamw = 3e9; adamw < 10e9; adamw *= 1.1) {
    const MachineProfile slower = even_machine({.adamw_params_per_s = 0.8 * adamw});
    const Plan plan = all_on_host(model, even_machine({.adamw_params_per_s = adamw}), false);
    const double best_s = all_on_host(model, slower, false).predicted->step_s;
    EXPECT_LE(simulate_plan(model, on_gpu(slower, 200 * kGiB, false), plan).step_s, best_s * 1.05)
        << adamw;
  }
}

TEST(Simulation, OutputsOfBlocksOnTheHostCrossOnceEachWayBesideThePasses) {
  const ModelTable model = bert(1024, 24);
  const auto plan_with = [&](Place boundaries, const MachineProfile& machine) {
    PlanRequest request = on_gpu(machine, 200 * kGiB);
    request.placement = Place::gpu;
    request.activations = Activations::recompute;
    request.micro_batch_size = 32;
    request.boundaries = boundaries;
    return make_plan(model, request);
  };
  const MachineProfile machine = even_machine({.copy_bytes_per_s = 100e9});
  const Plan on_gpu_plan = plan_with(Place::gpu, machine);
  const Plan on_host = plan_with(Place::host, machine);
  // Embeddings and 24 layers have an output; three slots hold the last.
  const double bytes = 22.0 * 32 * 512 * 1024 * 2;
  for (QueueId queue : {QueueId::d2h, QueueId::h2d})
    EXPECT_NEAR(busy(on_host, queue) - busy(on_gpu_plan, queue), bytes / 100e9,
                0.05 * bytes / 100e9);
  EXPECT_LE(on_host.predicted->step_s, on_gpu_plan.predicted->step_s * 1.01);
  const PlanRequest request = on_gpu(machine, 200 * kGiB);
  const Simulation traced = simulate_plan(model, request, on_host, /*keeps_actions=*/true);
  for (Verb verb : {Verb::send_boundary, Verb::fetch_boundary})
    EXPECT_EQ(
        std::ranges::count_if(traced.actions,
                              [&](const TimedAction& a) { return a.verb == verb && a.step == 1; }),
        22)
        << name_of(verb);
  // Slow copies are what such a step takes.
  const Plan slow = plan_with(Place::host, even_machine({.copy_bytes_per_s = 2e9}));
  EXPECT_GE(slow.predicted->step_s, 2 * bytes / 2e9 * 0.9);
}

TEST(Simulation, ComparesPlansWithOutputsOfBlocksOnTheHostByTheirTimes) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = on_gpu(even_machine({}), 4 * kGiB);
  request.train_batch_size = request.micro_batch_size.emplace(128);
  const Plan plan = make_plan(model, request);
  EXPECT_TRUE(plan.shape.boundaries_on_host);
  ASSERT_TRUE(plan.predicted);
  // The fastest of those that can be forced.
  int n_fit = 0;
  for (Place place : {Place::gpu, Place::host})
    for (Activations activations : {Activations::keep, Activations::recompute}) {
      request.placement = place;
      request.activations = activations;
      try {
        EXPECT_GE(make_plan(model, request).predicted->step_s, plan.predicted->step_s * 0.98);
        ++n_fit;
      } catch (const Error&) {  // does not fit
      }
    }
  EXPECT_GE(n_fit, 1);
}

TEST(Simulation, MakingTheLargestTensorAgainTakesItsProductAndLessThanAWholeForward) {
  const ModelTable model = bert(1024, 24);
  const MachineProfile machine = even_machine({});
  const auto plan_with = [&](Activations activations) {
    PlanRequest request = on_gpu(machine, 200 * kGiB);
    request.placement = Place::gpu;
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
      model, even_machine({.copy_bytes_per_s = 5e9, .adamw_params_per_s = 100e9}), true);
  EXPECT_EQ(plan.predicted->binding(), QueueId::h2d);
  EXPECT_GE(plan.predicted->step_s, busy(plan, QueueId::h2d));
}

TEST(Simulation, SharingTheHostsMemoryTakesLonger) {
  const ModelTable model = bert(1024, 24);
  const MachineRates rates = {.adamw_params_per_s = 4e9};
  MachineRates shared = rates;
  shared.shared = 0.6;
  for (bool clips : {true, false})
    EXPECT_GT(all_on_host(model, even_machine(shared), clips).predicted->step_s,
              all_on_host(model, even_machine(rates), clips).predicted->step_s * 1.01);
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
        {.flops_per_s = flops_per_s, .copy_bytes_per_s = 1e15, .adamw_params_per_s = 1e15});
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
    request.placement = Place::gpu;
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

// All graphs of all sizes are kept: 24 layers both ways are 48 a size, of at most 256.
TEST(TokenSizes, AreAsManyAsHaveTheirGraphsKept) {
  const auto n_sizes = [](const ModelTable& model, int64_t length, int64_t n_micro) {
    MachineProfile machine = even_machine({});
    PlanRequest request = on_gpu(machine, 40 * kGiB);
    request.max_length = length;
    request.micro_batch_size = 4;
    request.train_batch_size = 4 * n_micro;
    return n_token_sizes(model, make_plan(model, request));
  };
  EXPECT_EQ(n_sizes(bert(1024, 24), 64, 1), 5);
  EXPECT_EQ(n_sizes(bert(1024, 24), 64, 2), 8) << "2 sizes would have theirs, and fit no text";
  EXPECT_EQ(n_sizes(bert(256, 12), 64, 1), 8);
  EXPECT_EQ(n_sizes(bert(1024, 24), 8192, 1), 8) << "whose kernels take longer than launches";
}

// What is not known must not count as taking no time.
TEST(Figures, AreMissingOneByOne) {
  const ModelTable model = bert(256, 2);
  const MachineProfile whole = even_machine({});
  EXPECT_EQ(missing_figures(whole, true, model), "");
  const auto lacks = [&](auto&& take) {
    MachineProfile machine = whole;
    take(machine);
    return missing_figures(machine, true, model);
  };
  EXPECT_NE(lacks([](auto& m) { m.gpu.reset(); }), "");
  EXPECT_NE(lacks([](auto& m) { m.gpu->copies.clear(); }), "");
  EXPECT_NE(lacks([](auto& m) { m.gpu->gemms.clear(); }), "");
  EXPECT_NE(lacks([](auto& m) { m.gpu->attentions.clear(); }), "");
  EXPECT_NE(lacks([](auto& m) { m.gpu->memory_bytes_per_s = 0; }), "");
  EXPECT_NE(lacks([](auto& m) { m.host.adamw.clear(); }), "");
  EXPECT_NE(lacks([](auto& m) {
              std::erase_if(m.gpu->gemms, [](const GemmRate& r) { return r.type == DType::bf16; });
            }),
            "");
  // The CPU's attention was not measured there.
  EXPECT_NE(missing_figures(whole, false, model), "");
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
          const MachineProfile machine = even_machine({.adamw_params_per_s = adamw, .shared = 0.8});
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

TEST(Simulation, KeepsATraceOfTwoStepsInOrder) {
  const ModelTable model = bert(256, 4);
  const PlanRequest request = on_gpu(even_machine({}), 40 * kGiB);
  const Plan plan = make_plan(model, request);
  const auto actions = simulate_plan(model, request, plan, true).actions;
  EXPECT_EQ(actions.size(),
            2 * make_training_list(plan.shape, static_cast<int>(plan.n_micro)).size());
  for (const TimedAction& action : actions)
    EXPECT_TRUE(action.end_s >= action.begin_s && (action.step == 1 || action.step == 2));
}

TEST(Search, MoreMemoryNeverMakesAStepSlower) {
  const ModelTable model = bert(1024, 24);
  for (bool clips : {true, false})
    for (double adamw : {2e9, 20e9}) {
      const MachineProfile machine = even_machine({.adamw_params_per_s = adamw, .shared = 0.7});
      double last_s = 1e9;
      for (int64_t gib : {2, 3, 4, 6, 8, 11, 16, 24, 80}) {
        const Plan plan = make_plan(model, on_gpu(machine, gib * kGiB, clips));
        EXPECT_LE(plan.layout.n_bytes[0], gib * kGiB);
        EXPECT_LE(plan.predicted->step_s, last_s * 1.025) << gib << " GiB: " << plan.why;
        last_s = plan.predicted->step_s;
      }
      EXPECT_EQ(make_plan(model, on_gpu(machine, 80 * kGiB, clips)).shape.blocks[5].place,
                Place::gpu);
    }
}

/** Whoever forces a choice gets nothing faster than the planner's own, but for what its predictions
 * do not tell apart. */
TEST(Search, NoForcedChoiceIsFaster) {
  const ModelTable model = bert(1024, 24);
  int n_compared = 0, n_on_host = 0, n_saved_on_host = 0;
  for (const double flops : {50e12, 400e12})
    for (const bool clips : {true, false})
      for (const int64_t gib : {2, 4, 9}) {
        const MachineProfile machine =
            even_machine({.flops_per_s = flops, .adamw_params_per_s = 5e9, .shared = 0.8});
        const PlanRequest request = on_gpu(machine, gib * kGiB, clips);
        const std::optional<Plan> chosen = find_plan(model, request);
        n_on_host += chosen && chosen->shape.boundaries_on_host;
        n_saved_on_host += chosen && chosen->shape.blocks[5].activations == Activations::host;
        for (const Activations activations :
             {Activations::keep, Activations::selective, Activations::recompute, Activations::host})
          for (const Place boundaries : {Place::gpu, Place::host})
            for (const int n_slots : {2, 3, 4})
              for (const bool all_on_host : {false, true}) {
                PlanRequest forced = request;
                forced.activations = activations;
                forced.boundaries = boundaries;
                forced.n_weight_slots = n_slots;
                if (all_on_host) forced.placement = Place::host;
                const std::optional<Plan> other = find_plan(model, forced);
                if (!other) continue;
                ASSERT_TRUE(chosen) << gib << " GiB: " << other->why;
                EXPECT_LE(chosen->predicted->step_s, other->predicted->step_s * 1.03)
                    << gib << " GiB, " << flops << ", clips " << clips << ": " << chosen->why
                    << "\nforced, " << n_slots << " slots: " << other->why;
                ++n_compared;
              }
      }
  EXPECT_GT(n_compared, 300);
  EXPECT_GT(n_on_host, 0);
  EXPECT_GT(n_saved_on_host, 0);
}

TEST(Search, FillsTheCardWithBlocks) {
  const ModelTable model = bert(1024, 24);
  const MachineProfile machine = even_machine({.adamw_params_per_s = 2e9});
  PlanRequest request = on_gpu(machine, 10 * kGiB);
  request.micro_batch_size = 32;
  request.activations = Activations::keep;
  request.boundaries = Place::gpu;
  request.n_weight_slots = kWeightSlots;
  const Plan filled = make_plan(model, request);
  EXPECT_GT(filled.n_resident, 2) << filled.why;
  EXPECT_LT(filled.n_resident, filled.shape.n_blocks());
  for (int b = 0; b < filled.shape.n_blocks(); ++b)
    EXPECT_EQ(filled.shape.blocks[static_cast<size_t>(b)].place == Place::gpu,
              b < filled.n_resident);
  // One block more would not fit.
  StepShape more = filled.shape;
  more.blocks[static_cast<size_t>(filled.n_resident)].place = Place::gpu;
  EXPECT_GT(make_layout(more).n_bytes[0], 10 * kGiB);
  // Without a profile, too: times are not needed to know that.
  PlanRequest unknown = request;
  unknown.machine.reset();
  unknown.gpu_budget_bytes = request.gpu_budget_bytes;
  EXPECT_EQ(make_plan(model, unknown).n_resident, filled.n_resident);
  // Who asks for the host gets the host.
  request.placement = Place::host;
  EXPECT_EQ(make_plan(model, request).n_resident, 0);
}

TEST(Search, TakesBothMemoriesTogetherWhereNeitherIsEnough) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = on_gpu(even_machine({}), 5 * kGiB);
  request.host_budget_bytes = 3 * kGiB;  // of 4.9 for weights, gradients and states
  const Plan plan = make_plan(model, request);
  EXPECT_GT(plan.n_resident, 0);
  EXPECT_LE(plan.layout.n_bytes[0], 5 * kGiB);
  EXPECT_LE(plan.layout.n_bytes[1], 3 * kGiB);
  request.placement = Place::host;
  EXPECT_THROW(make_plan(model, request), Error);
}

TEST(Search, BlocksThatShareTensorsLiveTogether) {
  const ModelTable model = bert(1024, 24, HeadKind::masked_lm);
  const MachineProfile machine = even_machine({.adamw_params_per_s = 2e9});
  for (int64_t gib : {5, 8, 10, 12}) {
    PlanRequest request = on_gpu(machine, gib * kGiB);
    const Plan plan = make_plan(model, request);
    EXPECT_EQ(plan.shape.blocks.front().place, plan.shape.blocks.back().place) << plan.why;
  }
}

TEST(Search, TakesMicroBatchesVerticallyWhereCopiesBind) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request =
      on_gpu(even_machine({.copy_bytes_per_s = 4e9, .adamw_params_per_s = 50e9}), 40 * kGiB);
  request.placement = Place::host;
  request.micro_batch_size = 8;
  const Plan plan = make_plan(model, request);
  EXPECT_EQ(plan.shape.order, AccumulationOrder::vertical) << plan.why;
  request.order = AccumulationOrder::horizontal;
  EXPECT_GT(make_plan(model, request).predicted->step_s, plan.predicted->step_s * 1.5);
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
