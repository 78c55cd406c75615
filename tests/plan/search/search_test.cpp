// The planner's choices, by predicted times.

#include "src/plan/search/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "src/base/error.h"
#include "src/config/models/models.h"
#include "src/plan/search/fill.h"
#include "src/request/run_plan.h"
#include "tests/plan/requests.h"
#include "tests/plan/search/even_plans.h"
#include "tests/request/settings.h"

namespace ferry::test {
namespace {

TEST(Simulation, ComparesPlansWithOutputsOfBlocksOnTheHostByTheirTimes) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = on_gpu(even_machine({}), 4 * kGiB);
  request.train_batch_size = request.micro_batch_size.emplace(128);
  const Plan plan = make_plan(model, request);
  EXPECT_TRUE(plan.shape.layer_inputs_on_host);
  ASSERT_TRUE(plan.predicted);
  // The fastest of those that can be forced.
  int n_fit = 0;
  for (Place place : {Place::device, Place::host})
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

TEST(Search, PlacesABlockWithItsOnlyBorrower) {
  StepShape shape;
  shape.blocks.resize(4);
  shape.blocks[3].borrowed = {{.block = 0, .tensor = 0}, {.block = 0, .tensor = 1}};
  EXPECT_EQ(groups_of(shape), (std::vector<std::vector<int>>{{0, 3}, {1}, {2}}));
  shape.blocks[2].borrowed = {{.block = 0, .tensor = 0}};
  EXPECT_EQ(groups_of(shape), (std::vector<std::vector<int>>{{0}, {1}, {2}, {3}}));
}

// However much memory there is: their grids end at 65535 texts and 4,194,240 tokens.
TEST(Search, TakesNoMoreAtOnceThanKernelsDo) {
  const ModelTable model = bert(128, 2);
  for (const bool has_times : {true, false})
    for (const auto& [batch, length] : {std::pair{1 << 13, 512}, std::pair{1 << 20, 16}}) {
      PlanRequest request = on_gpu(even_machine({}), 2000 * kGiB);
      if (!has_times) request.machine.reset();
      request.train_batch_size = batch;
      request.max_length = length;
      const Plan plan = make_plan(model, request);
      EXPECT_GT(plan.n_micro, 1);
      EXPECT_LE(plan.largest.tokens, 4'194'240);
      EXPECT_LE(plan.largest.n_seqs_max, 65535);
      request.micro_batch_size = batch;
      try {
        make_plan(model, request);
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::usage) << error.what();
        EXPECT_NE(std::string(error.what()).find("per_device_train_batch_size"), std::string::npos)
            << error.what();
      }
    }
}

TEST(Search, MoreMemoryNeverMakesAStepSlower) {
  const ModelTable model = bert(1024, 24);
  for (bool clips : {true, false})
    for (double adamw : {2e9, 20e9}) {
      const MachineProfile machine = even_machine({.update_params_per_s = adamw, .shared = 0.7});
      double last_s = 1e9;
      for (int64_t gib : {2, 3, 4, 6, 8, 11, 16, 24, 80}) {
        const Plan plan = make_plan(model, on_gpu(machine, gib * kGiB, clips));
        EXPECT_LE(plan.layout.n_bytes[0], gib * kGiB);
        EXPECT_LE(plan.predicted->step_s, last_s * 1.025) << gib << " GiB: " << plan.why;
        last_s = plan.predicted->step_s;
      }
      EXPECT_EQ(make_plan(model, on_gpu(machine, 80 * kGiB, clips)).shape.blocks[5].place.states,
                Place::device);
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
            even_machine({.flops_per_s = flops, .update_params_per_s = 5e9, .shared = 0.8});
        const PlanRequest request = on_gpu(machine, gib * kGiB, clips);
        const std::optional<Plan> chosen = find_plan(model, request);
        n_on_host += chosen && chosen->shape.layer_inputs_on_host;
        n_saved_on_host += chosen && chosen->shape.blocks[5].activations == Activations::host;
        for (const Activations activations :
             {Activations::keep, Activations::selective, Activations::recompute, Activations::host})
          for (const Place layer_inputs : {Place::device, Place::host})
            for (const int n_slots : {2, 3, 4})
              for (const bool all_on_host : {false, true}) {
                PlanRequest forced = request;
                forced.activations = activations;
                forced.layer_inputs = layer_inputs;
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
  const MachineProfile machine = even_machine({.update_params_per_s = 20e9});
  PlanRequest request = on_gpu(machine, 10 * kGiB);
  request.micro_batch_size = 32;
  request.activations = Activations::keep;
  request.layer_inputs = Place::device;
  request.n_weight_slots = kWeightSlots;
  const Plan filled = make_plan(model, request);
  EXPECT_GT(filled.n_resident, 2) << filled.why;
  EXPECT_LT(filled.n_resident, filled.shape.n_blocks());
  for (int b = 0; b < filled.shape.n_blocks(); ++b)
    EXPECT_EQ(filled.shape.blocks[b].place.states == Place::device, b < filled.n_resident);
  // One block more would not fit.
  StepShape more = filled.shape;
  more.blocks[filled.n_resident].place = Place::device;
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

// Slots are as large as the largest block that streams: with large frozen embeddings, which take
// nothing but their weights, all on the host needs more of the GPU than the embeddings on it.
TEST(Search, PutsALargeBlockOnTheGpuWhereItsSlotsTakeMore) {
  ModelTable model = bert(256, 12, HeadKind::classification, /*vocab_size=*/100'000);
  for (ParamSpec& param : model.blocks.front().params)
    param.trainable = false;
  model.blocks.front().arrange();
  PlanRequest request = on_gpu(even_machine({}), 0);
  request.train_batch_size = 1;
  request.max_length = 64;
  request.n_weight_slots = kWeightSlots;
  request.activations = Activations::keep;
  const auto gpu_bytes = [&](int n_resident) {
    const BatchShape batch = {.tokens = 128, .n_seqs_max = 3, .max_length = 64};
    StepShape shape = make_step_shape(model, batch, request, 1);
    choose(shape, model, {.place = Place::host});
    for (int b = 0; b < n_resident; ++b)
      shape.blocks[b].place = Place::device;
    return make_layout(shape).n_bytes[0];
  };
  ASSERT_LT(gpu_bytes(1), gpu_bytes(0) - 64 * kMiB);
  request.gpu_budget_bytes = (gpu_bytes(0) + gpu_bytes(1)) / 2;
  const Plan plan = make_plan(model, request);
  EXPECT_GE(plan.n_resident, 1) << plan.why;
  EXPECT_LE(plan.layout.n_bytes[0], request.gpu_budget_bytes);
}

TEST(Search, TakesTwoSlotsWhereThreeDoNotFit) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = on_gpu(even_machine({}), 0);
  request.train_batch_size = 1;
  request.max_length = 64;
  const auto least_gpu_bytes = [&](int n_slots) {
    PlanRequest of = request;
    of.n_weight_slots = n_slots;
    int64_t fits = kGiB, refused = 0;
    while (fits - refused > kMiB) {
      of.gpu_budget_bytes = (fits + refused) / 2;
      (find_plan(model, of) ? fits : refused) = of.gpu_budget_bytes;
    }
    return fits;
  };
  const int64_t two = least_gpu_bytes(kWeightSlots_least), three = least_gpu_bytes(kWeightSlots);
  ASSERT_GT(three - two, 16 * kMiB);
  for (const bool knows_times : {true, false}) {
    if (!knows_times) request.machine.reset();
    request.gpu_budget_bytes = two;
    EXPECT_EQ(make_plan(model, request).shape.n_weight_slots, kWeightSlots_least);
    request.gpu_budget_bytes = two - 2 * kMiB;
    EXPECT_FALSE(find_plan(model, request));
  }
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
  const MachineProfile machine = even_machine({.update_params_per_s = 2e9});
  int n_shared_out = 0;
  for (int64_t gib : {5, 8, 10, 12}) {
    PlanRequest request = on_gpu(machine, gib * kGiB);
    const Plan plan = make_plan(model, request);
    EXPECT_EQ(plan.shape.blocks.front().place.grads, plan.shape.blocks.back().place.grads)
        << plan.why;
    n_shared_out += plan.n_resident > 0 && plan.n_resident < plan.shape.n_blocks();
  }
  EXPECT_GT(n_shared_out, 0);
}

// Weights that stay on the card while the host updates them cross once a step, in place of twice a
// micro-batch.
TEST(Search, KeepsWeightsOnTheCardWhereCopiesBind) {
  const ModelTable model = bert(1024, 24);
  const MachineProfile machine =
      even_machine({.copy_bytes_per_s = 2e9, .update_params_per_s = 50e9});
  for (const int64_t gpu_bytes : {3 * kGiB / 2, 2 * kGiB}) {
    PlanRequest request = on_gpu(machine, gpu_bytes);
    request.micro_batch_size = 4;
    request.order = AccumulationOrder::horizontal;
    const Plan plan = make_plan(model, request);
    EXPECT_GT(plan.n_weights, 0) << plan.why;
    EXPECT_LE(plan.layout.n_bytes[0], gpu_bytes);
    Plan streamed = plan;
    for (BlockShape& block : streamed.shape.blocks)
      if (block.place == kWeightsOnDevice) block.place = Place::host;
    EXPECT_GT(simulate_plan(model, request, streamed).step_s, 1.1 * plan.predicted->step_s)
        << plan.why;
  }
}

/** The least time of a step of the plan with all that the card may hold but states alone. */
double fastest_without_states(const ModelTable& model, const PlanRequest& request, Plan plan) {
  double least_s = std::numeric_limits<double>::infinity();
  for (const auto part : {Filling::Part::none, Filling::Part::weights})
    for (const int n_slots : {kWeightSlots, kWeightSlots_least})
      for (const double share : {1.0, 0.75, 0.5, 0.0}) {
        Search search;
        plan.shape.n_weight_slots = n_slots;
        if (fill(request, plan, search, {share, part}).total() > 0) continue;
        least_s = std::min(least_s, simulate_plan(model, request, plan).step_s);
      }
  return least_s;
}

void expect_faster_with_states(const ModelTable& model, PlanRequest request, double least_gain) {
  request.activations = Activations::keep;
  request.layer_inputs = Place::device;
  const Plan plan = make_plan(model, request);
  EXPECT_GT(plan.n_states, 0) << plan.why;
  EXPECT_EQ(std::ranges::count(plan.shape.blocks, kStatesOnDevice, &BlockShape::place),
            plan.n_states);
  EXPECT_NE(plan.why.find(fmt::format("the states of {} that stay", plan.n_states)),
            std::string::npos)
      << plan.why;
  EXPECT_LE(plan.layout.n_bytes[0], request.gpu_budget_bytes);
  const double without_s = fastest_without_states(model, request, plan),
               with_s = plan.predicted->step_s;
  EXPECT_LT(with_s, without_s * (1 - least_gain)) << plan.why;
  fmt::print(
      "{} on {}: {:.0f} ms with states of {} blocks on the card, {:.0f} ms without ({:.1f} "
      "%)\n",
      model.family, request.machine->name, with_s * 1e3, plan.n_states, without_s * 1e3,
      100 * (1 - with_s / without_s));
}

// A byte of the card updates more parameters where their weights and gradients are on the host.
TEST(Search, KeepsStatesOnTheCardWhereUpdatesBind) {
  PlanRequest request =
      on_gpu(even_machine({.copy_bytes_per_s = 25e9, .update_params_per_s = 1e9}), 5 * kGiB);
  request.train_batch_size = 16;
  request.max_length = 128;
  for (const bool clips : {true, false}) {
    request.clips = clips;
    expect_faster_with_states(bert(1024, 24), request, 0.05);
  }
  // With copies that slow there is nothing to gain by it.
  request.machine = even_machine({.copy_bytes_per_s = 2e9, .update_params_per_s = 20e9});
  EXPECT_EQ(make_plan(bert(1024, 24), request).n_states, 0);
}

/** As `ferry train` asks for it. */
TEST(Search, KeepsStatesOfALanguageModelOnTheCardWhereUpdatesBind) {
  for (const auto& [name, card, settings] :
       {std::tuple{"Llama-3.2-3B", "4090-24g", Settings{{"max_length", "512"}}},
        {"Llama-3.1-8B",
         "4090-24g",
         {{"max_length", "512"}, {"optim", "adamw_8bit"}, {"master", "split"}}}}) {
    const config::Config config = config_of(settings);
    const PlanMachine machine = machine_of(find_machine_preset(card));
    const HfConfig hf = HfConfig::parse(config::known_model_config(name).value(), "config.json");
    const ModelTable model = make_model_table(config, hf, HeadKind::causal_lm, 0, machine);
    PlanRequest request = make_plan_request(config, model, machine, /*trains=*/true);
    request.train_batch_size = 1;
    expect_faster_with_states(model, request, 0.03);
  }
}

TEST(Search, TakesMicroBatchesVerticallyWhereCopiesBind) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request =
      on_gpu(even_machine({.copy_bytes_per_s = 4e9, .update_params_per_s = 50e9}), 40 * kGiB);
  request.placement = Place::host;
  request.micro_batch_size = 8;
  const Plan plan = make_plan(model, request);
  EXPECT_EQ(plan.shape.order, AccumulationOrder::vertical) << plan.why;
  request.order = AccumulationOrder::horizontal;
  EXPECT_GT(make_plan(model, request).predicted->step_s, plan.predicted->step_s * 1.5);
}

}  // namespace
}  // namespace ferry::test
