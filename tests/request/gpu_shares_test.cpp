// Shares of unlike GPUs from their speeds.

#include "src/request/gpu_shares.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "offload/step/ranks.h"

namespace ferry::test {
namespace {

using ::testing::ElementsAre;

std::vector<int> of_step(std::vector<double> seconds, int64_t n_micro) {
  return shares_by_speed(seconds, {.n = n_micro, .is_fixed = true});
}
std::vector<int> of_open_step(std::vector<double> seconds, int64_t n_most) {
  return shares_by_speed(seconds, {.n = n_most});
}

TEST(GpuShares, AreTheSpeedsInSmallNumbers) {
  EXPECT_THAT(of_open_step({1, 2}, 32), ElementsAre(2, 1));
  EXPECT_THAT(of_open_step({3.1, 1}, 32), ElementsAre(1, 3));
  EXPECT_THAT(of_open_step({1, 1.5}, 32), ElementsAre(3, 2));
  EXPECT_THAT(of_open_step({1, 4, 2, 4}, 32), ElementsAre(4, 1, 2, 1));
  EXPECT_THAT(of_open_step({1, 9}, 4), ElementsAre(3, 1)) << "no more than there are samples";
}

TEST(GpuShares, AreEqualWhereSpeedsAreNearly) {
  EXPECT_THAT(of_open_step({1, 1.08}, 32), ElementsAre(1, 1));
  EXPECT_THAT(of_open_step({1.03, 1, 1.02, 0.99}, 512), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(of_step({1, 1.05}, 8), ElementsAre(1, 1));
  EXPECT_THAT(of_step({0.7}, 8), ElementsAre(1));
}

TEST(GpuShares, CountTheMicroBatchesThatAStepHas) {
  EXPECT_THAT(of_step({1, 1.5}, 4), ElementsAre(1, 1)) << "3 : 1 would take as long";
  EXPECT_THAT(of_step({1, 2}, 6), ElementsAre(2, 1));
  EXPECT_THAT(of_step({1.5, 1}, 5), ElementsAre(1, 2)) << "of five the ranks have 2 and 3";
}

TEST(GpuShares, GiveAStepOfOneToTheFastest) {
  const std::vector<int> shares = of_step({2, 1}, 1);
  EXPECT_EQ(Rounds({.world = 2, .shares = shares}, 1).n_of(1), 1) << shares[0] << ", " << shares[1];
  EXPECT_THAT(of_step({1, 2}, 1), ElementsAre(1, 1));
}

/** No other way to deal the micro-batches of a step, one to each rank at least, is faster. */
TEST(GpuShares, EndStepsAsEarlyAsTheyCan) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> seconds;
    for (int rank = 0; rank < 3; ++rank)
      seconds.push_back(std::uniform_real_distribution(1.0, 5.0)(random));
    const int n = std::uniform_int_distribution(3, 40)(random);
    double least_s = 1e9;
    for (int a = 1; a < n - 1; ++a)
      for (int b = 1; a + b < n; ++b)
        least_s =
            std::min(least_s, std::max({a * seconds[0], b * seconds[1], (n - a - b) * seconds[2]}));
    const Rounds rounds({.world = 3, .shares = of_step(seconds, n)}, n);
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_LE(rounds.n_of(rank) * seconds[static_cast<size_t>(rank)], 1.021 * least_s) << n;
  }
}

TEST(GpuShares, AreFoundForManyRanks) {
  std::vector<double> seconds(256, 1.0);
  std::fill(seconds.begin() + 128, seconds.end(), 2.0);
  const std::vector<int> shares = of_open_step(seconds, 4096);
  EXPECT_EQ(shares.front(), 2);
  EXPECT_EQ(shares.back(), 1);
}

}  // namespace
}  // namespace ferry::test
