#include "src/data/step_plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

namespace ferry {
namespace {

using ::testing::ElementsAre;

std::vector<size_t> sizes_of(const StepPlan& plan) {
  std::vector<size_t> sizes;
  for (const auto& samples : plan.micro_batches)
    sizes.push_back(samples.size());
  return sizes;
}

TEST(StepPlan, AnEpochVisitsEverySampleOnceAndItsLastStepIsSmaller) {
  const Sampler sampler(100, 42);
  const StepSplit split{.train_batch_size = 32, .micro_batch_size = 12};
  std::vector<int64_t> seen;
  SamplerPosition where;
  for (int64_t step = 0; step < steps_per_epoch(100, split); ++step) {
    EXPECT_EQ(where, position_of_step(100, step, split));
    const StepPlan plan = plan_step(sampler, where, split);
    EXPECT_EQ(sizes_of(plan), (step < 3 ? std::vector<size_t>{12, 12, 8} : std::vector<size_t>{4}));
    for (const auto& samples : plan.micro_batches)
      seen.insert(seen.end(), samples.begin(), samples.end());
    EXPECT_EQ(plan.n_samples, step < 3 ? 32 : 4);
    where = plan.next;
  }
  EXPECT_EQ(where, (SamplerPosition{1, 0}));
  std::sort(seen.begin(), seen.end());
  std::vector<int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);
}

TEST(StepPlan, DependsOnThePositionAlone) {
  const Sampler sampler(1000, 5);
  const StepSplit split{.train_batch_size = 64, .micro_batch_size = 16};
  SamplerPosition where;
  for (int step = 0; step < 40; ++step)
    where = plan_step(sampler, where, split).next;
  EXPECT_EQ(where, position_of_step(1000, 40, split));
  EXPECT_EQ(plan_step(sampler, where, split).micro_batches,
            plan_step(Sampler(1000, 5), position_of_step(1000, 40, split), split).micro_batches);
  // The cut into micro-batches changes neither the samples of a step nor their order.
  auto flat = [&](int64_t micro_batch_size) {
    std::vector<int64_t> samples;
    for (const auto& part :
         plan_step(sampler, where, {.train_batch_size = 64, .micro_batch_size = micro_batch_size})
             .micro_batches)
      samples.insert(samples.end(), part.begin(), part.end());
    return samples;
  };
  EXPECT_EQ(flat(64), flat(5));
}

TEST(StepPlan, DropLastLeavesTheRestOut) {
  const Sampler sampler(100, 42);
  const StepSplit split{.train_batch_size = 32, .micro_batch_size = 32, .drop_last = true};
  EXPECT_EQ(steps_per_epoch(100, split), 3);
  EXPECT_EQ(plan_step(sampler, {0, 64}, split).next, (SamplerPosition{1, 0}));
  EXPECT_EQ(plan_step(sampler, {0, 96}, split).micro_batches,
            plan_step(sampler, {1, 0}, split).micro_batches);
  EXPECT_EQ(position_of_step(100, 7, split), (SamplerPosition{2, 32}));
}

TEST(StepPlan, ExactMultiplesEndTheEpoch) {
  const StepSplit split{.train_batch_size = 25, .micro_batch_size = 25};
  EXPECT_EQ(steps_per_epoch(100, split), 4);
  EXPECT_EQ(plan_step(Sampler(100, 1), {0, 75}, split).next, (SamplerPosition{1, 0}));
  EXPECT_EQ(plan_step(Sampler(10, 1), {0, 0}, split).n_samples, 10);  // fewer samples than a step
}

TEST(PlanPass, IsTheDatasetInOrder) {
  EXPECT_THAT(plan_pass(5, 2), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_TRUE(plan_pass(0, 2).empty());
}

TEST(TokenCounts, AreThoseOfTheRunAndBounded) {
  const std::vector<int32_t> lengths = {5, 1, 9, 2, 7, 3};
  const Sampler sampler(6, 1);
  const StepSplit split{.train_batch_size = 4, .micro_batch_size = 2};
  const auto counts =
      micro_batch_token_counts(sampler, lengths, split, 2);  // one epoch: 2 + 1 micro-batches
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 27);
  EXPECT_EQ(max_micro_batch_tokens(lengths, 2), 16);
  EXPECT_EQ(max_micro_batch_tokens(lengths, 100), 27);
}

TEST(LengthsInOrder, KnowsEveryMicroBatchOfTheRun) {
  std::vector<int32_t> lengths;
  for (int32_t i = 0; i < 103; ++i)
    lengths.push_back(1 + i * i % 97);
  constexpr int64_t kEpochs = 7;
  const Sampler sampler(103, 5);
  const LengthsInOrder order(sampler, lengths, kEpochs);
  for (const int64_t batch : {1, 8, 32, 103, 200})
    for (const int64_t micro : {1, 3, 8, 32}) {
      const StepSplit split{.train_batch_size = batch, .micro_batch_size = micro};
      const auto counts =
          micro_batch_token_counts(sampler, lengths, split, kEpochs * steps_per_epoch(103, split));
      const MicroBatchTokens tokens = order.of_micro_batches(split);
      EXPECT_EQ(tokens.most, *std::max_element(counts.begin(), counts.end())) << batch << micro;
      EXPECT_DOUBLE_EQ(tokens.mean * static_cast<double>(counts.size()),
                       std::accumulate(counts.begin(), counts.end(), 0.0));
      EXPECT_LE(tokens.most, max_micro_batch_tokens(lengths, micro));
    }
  const LengthsInOrder pass({3, 1, 4, 1, 5});
  EXPECT_EQ(pass.of_micro_batches({.train_batch_size = 2, .micro_batch_size = 2}).most, 5);
  EXPECT_EQ(LengthsInOrder(std::vector<int32_t>()).of_micro_batches({}).most, 0);
}

int64_t tokens_added(const std::vector<int64_t>& sizes, const std::vector<int64_t>& counts) {
  int64_t added = 0;
  for (int64_t count : counts)
    added += *std::lower_bound(sizes.begin(), sizes.end(), count) - count;
  return added;
}

TEST(TokenSizes, CoverTheMaximumInFewMultiples) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < 500; ++i)
    counts.push_back(300 + i * i % 700);
  const auto sizes = choose_token_sizes(2048, counts, 8);
  EXPECT_EQ(sizes.size(), 8u);
  EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
  EXPECT_EQ(sizes.back(), 2048);
  for (int64_t size : sizes)
    EXPECT_EQ(size % 64, 0);
  EXPECT_LT(tokens_added(sizes, counts),
            tokens_added({256, 512, 768, 1024, 1280, 1536, 1792, 2048}, counts));
  EXPECT_THAT(choose_token_sizes(100, std::vector<int64_t>{}, 8), ElementsAre(128));
  EXPECT_THAT(choose_token_sizes(200, std::vector<int64_t>{10, 70, 200}, 8),
              ElementsAre(64, 128, 256));
}

TEST(TokenSizes, AreTheBestByExhaustion) {
  // Eight candidates 8..64, all choices of up to three of them with the last fixed.
  const std::vector<int64_t> counts = {3, 9, 9, 10, 17, 30, 31, 31, 33, 41, 41, 50, 52, 8, 16, 24};
  for (int64_t n_max : {1, 2, 3, 4}) {
    int64_t best = std::numeric_limits<int64_t>::max();
    for (unsigned mask = 0; mask < 128; ++mask) {
      if (__builtin_popcount(mask) >= n_max) continue;
      std::vector<int64_t> sizes;
      for (unsigned i = 0; i < 7; ++i)
        if (mask >> i & 1) sizes.push_back(8 * (i + 1));
      sizes.push_back(64);
      best = std::min(best, tokens_added(sizes, counts));
    }
    const auto sizes = choose_token_sizes(64, counts, n_max, 8);
    EXPECT_LE(static_cast<int64_t>(sizes.size()), n_max);
    EXPECT_EQ(sizes.back(), 64);
    EXPECT_EQ(tokens_added(sizes, counts), best) << n_max;
  }
}

}  // namespace
}  // namespace ferry
