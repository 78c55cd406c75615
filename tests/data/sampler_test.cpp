#include "src/data/sampler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> epoch_of(const Sampler& sampler, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(sampler.size()));
  for (int64_t i = 0; i < sampler.size(); ++i)
    order[static_cast<size_t>(i)] = sampler.at(epoch, i);
  return order;
}

TEST(Sampler, EveryEpochIsAPermutation) {
  for (int64_t n :
       {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 100, 255, 256, 257, 1000, 4095, 4099, 60614}) {
    const Sampler sampler(n, 42);
    for (int64_t epoch : {0, 1, 7}) {
      auto order = epoch_of(sampler, epoch);
      std::sort(order.begin(), order.end());
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(order[static_cast<size_t>(i)], i) << "n " << n;
    }
  }
}

TEST(Sampler, HugeSizesNeedNoMemory) {
  const int64_t n = (int64_t{1} << 40) + 12345;
  const Sampler sampler(n, 1);
  std::vector<int64_t> seen;
  for (int64_t i = 0; i < 10'000; ++i)
    seen.push_back(sampler.at(3, n - 1 - i));
  EXPECT_GE(*std::min_element(seen.begin(), seen.end()), 0);
  EXPECT_LT(*std::max_element(seen.begin(), seen.end()), n);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

TEST(Sampler, SeedAndEpochChangeTheOrderAndNothingElseDoes) {
  const auto first = epoch_of(Sampler(500, 42), 0);
  EXPECT_EQ(epoch_of(Sampler(500, 42), 0), first);
  EXPECT_NE(epoch_of(Sampler(500, 43), 0), first);
  EXPECT_NE(epoch_of(Sampler(500, 42), 1), first);
  std::vector<int64_t> plain(500);
  std::iota(plain.begin(), plain.end(), 0);
  EXPECT_EQ(epoch_of(Sampler(500, 42, /*shuffle=*/false), 9), plain);
}

// The order is part of a run's bits: a change here means that old runs no longer resume.
TEST(Sampler, TheOrderIsFrozen) {
  EXPECT_THAT(epoch_of(Sampler(10, 42), 0), ElementsAre(6, 9, 3, 0, 8, 1, 4, 5, 7, 2));
  EXPECT_EQ(Sampler(60614, 42).at(2, 12345), 24210);
}

TEST(Sampler, AllOrdersOfAFewSamplesAreEquallyLikely) {
  for (int64_t n : {2, 3, 4, 5}) {
    std::map<std::vector<int64_t>, int> counts;
    size_t n_orders = 1;
    for (int64_t i = 2; i <= n; ++i)
      n_orders *= static_cast<size_t>(i);
    const int expected = 200;
    const Sampler sampler(n, 7);
    const int n_epochs = static_cast<int>(n_orders) * expected;
    for (int epoch = 0; epoch < n_epochs; ++epoch)
      ++counts[epoch_of(sampler, epoch)];
    ASSERT_EQ(counts.size(), n_orders) << "n " << n;
    double chi_squared = 0;
    for (const auto& [order, count] : counts)
      chi_squared += (count - expected) * (count - expected) / double{expected};
    const double freedom = static_cast<double>(n_orders) - 1;
    EXPECT_LT(chi_squared, freedom + 5 * std::sqrt(2 * freedom))
        << "n " << n;  // five standard deviations
  }
}

TEST(Sampler, NeighboursAreUnrelated) {
  // The correlation of a position with its sample, and of neighbours' samples, over a large epoch:
  // within five standard deviations (1 / sqrt(n)) of 0.
  const int64_t n = 60614;
  const auto order = epoch_of(Sampler(n, 3), 0);
  const double mean = static_cast<double>(n - 1) / 2;
  double with_position = 0, with_next = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double here = static_cast<double>(order[static_cast<size_t>(i)]) - mean;
    variance += here * here;
    with_position += here * (static_cast<double>(i) - mean);
    with_next += here * (static_cast<double>(order[static_cast<size_t>((i + 1) % n)]) - mean);
  }
  const double bound = 5 / std::sqrt(static_cast<double>(n));
  EXPECT_LT(std::abs(with_position / variance), bound);
  EXPECT_LT(std::abs(with_next / variance), bound);
}

void expect_whole(const Split& split, int64_t n) {
  std::vector<int64_t> all = split.train;
  all.insert(all.end(), split.eval.begin(), split.eval.end());
  EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
  EXPECT_TRUE(std::is_sorted(split.eval.begin(), split.eval.end()));
  std::sort(all.begin(), all.end());
  ASSERT_EQ(static_cast<int64_t>(all.size()), n);
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(all[static_cast<size_t>(i)], i);
}

TEST(Split, HoldsOutAShareBySeed) {
  const Split bbc = split(2225, 0.2, 42);
  EXPECT_EQ(bbc.eval.size(), 445u);
  expect_whole(bbc, 2225);
  EXPECT_EQ(split(2225, 0.2, 42).eval, bbc.eval);
  EXPECT_NE(split(2225, 0.2, 43).eval, bbc.eval);
  EXPECT_EQ(split(2, 0.01, 1).eval.size(), 1u);  // neither side is ever empty
  EXPECT_EQ(split(2, 0.99, 1).train.size(), 1u);
  EXPECT_THAT(error_of([] { split(1, 0.5, 1); }), HasSubstr("1 examples cannot be split"));
  for (double bad : {0.0, 1.0, -0.5, std::nan("")})
    EXPECT_THAT(error_of([&] { split(10, bad, 1); }, Fault::usage),
                HasSubstr("expected 0 < share < 1"));
}

TEST(Split, StratifiedKeepsEveryClassInProportion) {
  std::vector<int32_t> classes;
  for (int32_t c = 0; c < 3; ++c)
    classes.insert(classes.end(), c == 0 ? 700 : c == 1 ? 203 : 97, c);
  const Split result = split_stratified(classes, 0.1, 42);
  expect_whole(result, 1000);
  std::vector<int64_t> counts(3);
  for (int64_t sample : result.eval)
    ++counts[static_cast<size_t>(classes[static_cast<size_t>(sample)])];
  EXPECT_THAT(counts, ElementsAre(70, 20, 10));  // 70.0, 20.3, 9.7
  EXPECT_NE(split_stratified(classes, 0.1, 43).eval, result.eval);
}

}  // namespace
}  // namespace ferry
