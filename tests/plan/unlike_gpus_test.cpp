// Plans of hosts whose GPUs are of several kinds: shares, the time of a step, and memory by GPU.

#include "src/plan/unlike_gpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "offload/step/layout.h"
#include "tests/plan/search/even_plans.h"

namespace ferry::test {
namespace {

/** A host whose GPUs compute at these rates, beside which nothing takes time. */
MachineProfile host_of(const std::vector<double>& flops_per_s) {
  const auto with = [](double rate) {
    MachineProfile machine =
        even_machine({.flops_per_s = rate, .copy_bytes_per_s = 1e15, .update_params_per_s = 1e15});
    machine.gpu->exchange = {.has_peer_access = true, .bytes_per_s = 1e15};
    machine.gpu->n_of_host = 0;
    return machine;
  };
  MachineProfile machine = with(flops_per_s.front());
  for (size_t i = 0; i < flops_per_s.size(); ++i) {
    GpuProfile gpu = *with(flops_per_s[i]).gpu;
    gpu.name = "GPU of " + std::to_string(flops_per_s[i]);
    if (i == 0)
      machine.gpu = gpu;
    else
      machine.other_gpus.push_back(gpu);
  }
  return machine;
}

constexpr double kFast = 400e12, kSlow = 100e12;

/** A step of n_micro micro-batches of 8, whose samples are split in these shares. */
PlanRequest request_of(const MachineProfile& machine,
                       std::vector<int> shares,
                       int64_t n_micro,
                       int world = 2) {
  PlanRequest request = on_gpu(machine, 200 * kGiB);
  request.train_batch_size = 8 * n_micro;
  request.micro_batch_size = 8;
  request.world = world;
  request.shares = std::move(shares);
  request.n_stages = 1;
  request.reduction = Reduction::ordered;
  request.zero_level = kZeroLevel_least;
  return request;
}
double step_s(const ModelTable& model, const PlanRequest& request) {
  return make_plan(model, request).predicted->step_s;
}

TEST(UnlikeGpus, TakeAsLongForTheSamePassesAsTheirRatesSay) {
  const ModelTable model = bert(1024, 24);
  const PlanRequest request = request_of(host_of({kFast, kSlow, kFast}), {}, 12, 3);
  const std::vector<double> seconds = pass_seconds_by_rank(model, request);
  ASSERT_EQ(seconds.size(), 3u);
  EXPECT_EQ(seconds[0], seconds[2]);
  EXPECT_NEAR(seconds[1] / seconds[0], kFast / kSlow, 0.05);
  PlanRequest alike = request;
  alike.machine->other_gpus.clear();
  EXPECT_TRUE(pass_seconds_by_rank(model, alike).empty());
  PlanRequest of_two_hosts = request_of(host_of({kFast, kSlow}), {}, 12, 4);
  of_two_hosts.n_per_host = 2;
  const std::vector<double> of_all = pass_seconds_by_rank(model, of_two_hosts);
  ASSERT_EQ(of_all.size(), 4u);
  EXPECT_EQ(of_all[2], of_all[0]);
  EXPECT_EQ(of_all[3], of_all[1]);
}

/** Each rank first adds the gradients that it has, so ranks wait for each other once a block and
 * step. */
PlanRequest with_fast_sums(PlanRequest request) {
  request.reduction = Reduction::fast;
  request.order = AccumulationOrder::vertical;
  return request;
}

/** The rank that takes longest for its share ends the step, whichever it is. */
TEST(UnlikeGpus, AStepIsThatOfTheSlowestRankGivenItsShare) {
  const ModelTable model = bert(1024, 24);
  const double of_micro_s = step_s(model, request_of(host_of({kFast}), {}, 20, 1)) / 20;
  const double times = kFast / kSlow;
  for (const bool is_slow_first : {false, true}) {
    const MachineProfile machine =
        is_slow_first ? host_of({kSlow, kFast}) : host_of({kFast, kSlow});
    const auto expect = [&](int of_fast, int of_slow, int64_t n_micro, double n_times) {
      std::vector<int> shares = {of_fast, of_slow};
      if (is_slow_first) std::swap(shares[0], shares[1]);
      if (of_fast == of_slow) shares.clear();
      const PlanRequest request = request_of(machine, shares, n_micro);
      EXPECT_NEAR(step_s(model, with_fast_sums(request)) / of_micro_s, n_times, 0.08 * n_times)
          << of_fast << ", " << of_slow << (is_slow_first ? " the other way round" : "");
      // Gradients in the order of micro-batches may make ranks wait, and never make them faster.
      EXPECT_GT(step_s(model, request) / of_micro_s, 0.95 * n_times);
    };
    expect(1, 1, 20, 10 * times);
    expect(4, 1, 20, 16);
    expect(3, 1, 20, 5 * times);
    expect(9, 1, 20, 18);
    // Steps that are simulated in part: few of their passes are replayed as graphs.
    expect(4, 1, 80, 64);
    expect(1, 1, 200, 100 * times);
  }
}

/** A slow rank's backward goes on beside those of the rounds before it. Where each of these rounds
 * has a slot for gradients, none of them waits. */
TEST(UnlikeGpus, InTheOrderOfMicroBatchesTheyWaitForEachOtherLittle) {
  const ModelTable model = bert(1024, 24);
  const double of_micro_s = step_s(model, request_of(host_of({kFast}), {}, 20, 1)) / 20;
  PlanRequest request = request_of(host_of({kFast, kSlow}), {4, 1}, 20);
  const Plan plan = make_plan(model, request);
  EXPECT_EQ(plan.shape.order, AccumulationOrder::vertical);
  EXPECT_EQ(plan.shape.n_grad_slots, 4);
  EXPECT_NEAR(plan.predicted->step_s / of_micro_s, 16, 0.08 * 16);
  // In the other order it waits for a whole micro-batch.
  request.order = AccumulationOrder::horizontal;
  EXPECT_GT(step_s(model, request) / of_micro_s, 20);
  request.order.reset();
  request.shares.clear();
  EXPECT_EQ(make_plan(model, request).shape.n_grad_slots, 2) << "all have one in each round";
}

/** Shares say how fast GPUs are that no profile tells of, and one rank of each share is simulated.
 */
TEST(UnlikeGpus, InSharesAreAsFastAsTheseSay) {
  const ModelTable model = bert(1024, 24);
  for (const auto& [shares, n_micro] :
       {std::pair(std::vector{4, 1}, 20), std::pair(std::vector{1, 4}, 20)}) {
    const std::vector<double> rates =
        shares[0] > shares[1] ? std::vector{kFast, kSlow} : std::vector{kSlow, kFast};
    const Plan known = make_plan(model, request_of(host_of(rates), shares, n_micro)),
               by_share = make_plan(model, request_of(host_of({rates[0]}), shares, n_micro));
    EXPECT_EQ(by_share.predicted->ranks.size(), 2u);
    EXPECT_NEAR(by_share.predicted->step_s, known.predicted->step_s,
                0.05 * known.predicted->step_s);
  }
}

TEST(UnlikeGpus, OneOfEachKindStandsForAllOfIt) {
  const ModelTable model = bert(1024, 6);
  const MachineProfile machine = host_of({kFast, kFast, kSlow, kFast, kSlow});
  const Plan plan = make_plan(model, request_of(machine, {}, 20, 5));
  ASSERT_EQ(plan.predicted->ranks.size(), 2u);
  EXPECT_EQ(plan.predicted->ranks[0].rank, 0);
  EXPECT_EQ(plan.predicted->ranks[1].rank, 2);
  const auto computes = [&](size_t i) { return plan.predicted->ranks[i].busy_s[QueueId::compute]; };
  EXPECT_NEAR(computes(1) / computes(0), kFast / kSlow, 0.5);
  EXPECT_EQ(computes(0), busy(plan, QueueId::compute)) << "the table's";
  EXPECT_GE(plan.predicted->step_s, plan.predicted->busiest_s());
}

TEST(UnlikeGpus, WaitForTheSlowestLinkOfAll) {
  const ModelTable model = bert(1024, 6);
  MachineProfile machine = host_of({kFast, kSlow});
  machine.other_gpus[0].exchange->bytes_per_s = 2e9;
  PlanRequest request = request_of(machine, {}, 2);
  const Plan plan = make_plan(model, request);
  machine.gpu->exchange->bytes_per_s = 2e9;
  request.machine = machine;
  EXPECT_NEAR(busy(plan, QueueId::collective), busy(make_plan(model, request), QueueId::collective),
              0.01 * busy(plan, QueueId::collective));
}

/** Each stage computes at the rate of its GPU. */
TEST(UnlikeGpus, BlocksInSharesOfTheirSpeedTakeAsLongOnEach) {
  const ModelTable model = bert(1024, 40);
  const auto plan_with = [&](std::vector<int> shares) {
    PlanRequest request = request_of(host_of({kFast, kSlow}), std::move(shares), 16);
    request.n_stages = 2;
    return make_plan(model, request);
  };
  const auto computes = [](const Plan& plan, size_t stage) {
    return plan.predicted->ranks.at(stage).busy_s[QueueId::compute];
  };
  const Plan equal = plan_with({}), by_speed = plan_with({4, 1});
  EXPECT_NEAR(computes(equal, 1) / computes(equal, 0), 4, 0.5);
  EXPECT_NEAR(computes(by_speed, 1) / computes(by_speed, 0), 1, 0.2);
  EXPECT_LT(by_speed.predicted->step_s, 0.6 * equal.predicted->step_s);
}

/** Few micro-batches hide what they take behind updates that take always as long; many do not. */
TEST(UnlikeGpus, NoStepIsShorterThanTheBusiestQueueOfAnyStage) {
  const ModelTable model = bert(512, 12);
  int n_plans = 0;
  for (const double adamw : {2e7, 5e8, 1e11})
    for (const auto& [world, n_stages] : {std::pair(2, 2), std::pair(4, 4), std::pair(4, 2)})
      for (const AccumulationOrder order :
           {AccumulationOrder::vertical, AccumulationOrder::horizontal})
        for (const int64_t n_micro : {4, 64, 1024}) {
          MachineProfile machine = even_machine({.update_params_per_s = adamw});
          machine.gpu->exchange = {.has_peer_access = true, .bytes_per_s = 1e12};
          PlanRequest request = request_of(machine, {}, n_micro, world);
          request.n_stages = n_stages;
          request.order = order;
          request.placement = Place::host;
          const Plan plan = make_plan(model, request);
          EXPECT_EQ(plan.predicted->ranks.size(), static_cast<size_t>(n_stages));
          for (const RankBusy& its : plan.predicted->ranks)
            for (const double busy_s : its.busy_s)
              EXPECT_GE(plan.predicted->step_s, busy_s)
                  << plan.why << ", AdamW " << adamw << ", rank " << its.rank;
          ++n_plans;
        }
  EXPECT_EQ(n_plans, 54);
}

/** The bytes of a rank on its GPU. */
int64_t gpu_bytes_of(const Plan& plan, int rank) {
  StepShape shape = plan.shape;
  shape.ranks.rank = rank;
  return make_layout(shape).n_bytes[Place::device];
}

TEST(UnlikeGpus, SplitSamplesFitTheSmallestMemoryAndSplitBlocksThatOfEach) {
  const ModelTable model = bert(1024, 24);
  const std::vector<int64_t> budgets = {6 * kGiB, 2 * kGiB};
  PlanRequest request = request_of(host_of({kFast, kSlow}), {3, 1}, 8);
  request.gpu_budgets_bytes = budgets;
  request.gpu_budget_bytes = 2 * kGiB;
  const Plan samples = make_plan(model, request);
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_LE(gpu_bytes_of(samples, rank), 2 * kGiB) << samples.why;
  EXPECT_EQ(gpu_budget_of(request, samples.shape), 2 * kGiB);

  request.n_stages = 2;
  const Plan each = make_plan(model, request);
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_LE(gpu_bytes_of(each, rank), budgets[static_cast<size_t>(rank)]) << each.why;
  EXPECT_GT(gpu_bytes_of(each, 0), 2 * kGiB) << "the larger GPU is used: " << each.why;
  EXPECT_EQ(gpu_budget_of(request, each.shape), budgets[0]);
  PlanRequest of_least = request;
  of_least.gpu_budgets_bytes.clear();
  const Plan least = make_plan(model, of_least);
  EXPECT_LE(each.predicted->step_s, least.predicted->step_s);
}

/** Only the stage whose GPU is too small for its blocks streams some. */
TEST(UnlikeGpus, FillEachStageWithItsOwnBlocks) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = request_of(host_of({kFast, kFast / 2}), {}, 8);
  request.n_stages = 2;
  request.gpu_budgets_bytes = {20 * kGiB, kGiB + kGiB / 2};
  request.gpu_budget_bytes = request.gpu_budgets_bytes[1];
  request.machine.reset();
  const Plan plan = make_plan(model, request);
  int n_streamed[2] = {}, n_blocks[2] = {};
  for (const BlockShape& block : plan.shape.blocks) {
    ++n_blocks[block.stage];
    n_streamed[block.stage] += block.place.weights == Place::host;
  }
  EXPECT_EQ(n_streamed[0], 0) << plan.why;
  EXPECT_GT(n_streamed[1], 0) << plan.why;
  EXPECT_LT(n_streamed[1], n_blocks[1]) << plan.why;
  EXPECT_EQ(plan.n_resident, n_blocks[0] + n_blocks[1] - n_streamed[1]);
}

TEST(UnlikeGpus, AreComparedWithTheFasterOnesAlone) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = with_fast_sums(request_of(host_of({kSlow, kFast}), {1, 4}, 20));
  const auto fewer = fastest_subset(model, request);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->gpus, std::vector{1});
  EXPECT_NEAR(fewer->step_s, step_s(model, request_of(host_of({kFast}), {}, 20, 1)),
              0.02 * fewer->step_s);
  EXPECT_GT(fewer->step_s, 1.15 * step_s(model, request)) << "both are faster";
  request.shares.clear();
  EXPECT_LT(fewer->step_s, step_s(model, request)) << "in equal shares they are not";
  const auto says = [](const GpuSubset& subset, const PlanRequest& of, double times,
                       const std::vector<int>& numbers) {
    return comparison_text(subset, of, subset.step_s / times, numbers);
  };
  const std::string fast = "GPU of " + std::to_string(kFast);
  EXPECT_EQ(says({{1}, 0.5}, request, 1.25, {}),
            "The " + fast + " alone would take 500.0 ms a step: all 2 GPUs are 1.25 times as fast");
  const auto ends_with = [](const std::string& text, const std::string& end) {
    return text.ends_with(end);
  };
  EXPECT_TRUE(ends_with(says({{1}, 0.5}, request, 1.05, {}),
                        "1.05 times as fast, so the slower ones do not help here "
                        "(CUDA_VISIBLE_DEVICES=1 without --gpus takes the faster one)"));
  EXPECT_TRUE(
      ends_with(says({{1}, 0.5}, request, 1.05, {2, 0}), "(--gpus 1 takes the faster one)"));

  PlanRequest of_three = request_of(host_of({kFast, kSlow, kFast}), {}, 24, 3);
  const auto two = fastest_subset(model, of_three);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->gpus, (std::vector{0, 2}));
  EXPECT_TRUE(says(*two, of_three, 2, {}).starts_with("2 x " + fast + " alone would take"));
  EXPECT_TRUE(ends_with(says(*two, of_three, 1, {4, 5, 1}), "(--gpus 1,4 takes the faster ones)"));

  request.machine->other_gpus.clear();
  EXPECT_FALSE(fastest_subset(model, request)) << "all are alike";
}

/** A GPU alone has all of its memory. */
TEST(UnlikeGpus, TheLargerOneAloneHasItsOwnMemory) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = request_of(host_of({kFast, kSlow}), {}, 8);
  request.gpu_budgets_bytes = {20 * kGiB, 100 * kMiB};
  request.gpu_budget_bytes = 100 * kMiB;
  EXPECT_FALSE(find_plan(model, request)) << "the small one holds nothing";
  const auto fewer = fastest_subset(model, request);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->gpus, std::vector{0});
}

}  // namespace
}  // namespace ferry::test
