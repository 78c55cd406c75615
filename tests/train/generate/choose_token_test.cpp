// The next token by its logits.

#include "src/train/generate/choose_token.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace ferry {
namespace {

const std::vector<float> kLogits = {0, 3, -1, 2, 3, 1};

/** How often each token is drawn by evenly spread numbers. */
std::vector<double> shares(const SamplingRule& rule, int n = 10000) {
  std::vector<double> out(kLogits.size());
  for (int i = 0; i < n; ++i)
    out[static_cast<size_t>(choose_token(kLogits, rule, (i + 0.5) / n))] += 1.0 / n;
  return out;
}

std::vector<double> softmax(double temperature) {
  std::vector<double> out;
  double sum = 0;
  for (float x : kLogits)
    sum += out.emplace_back(std::exp(static_cast<double>(x) / temperature));
  for (double& x : out)
    x /= sum;
  return out;
}

TEST(ChooseToken, TakesTheFirstOfTheLikeliest) {
  for (double u : {0.0, 0.5, 0.999}) {
    EXPECT_EQ(choose_token(kLogits, {}, u), 1);
    EXPECT_EQ(choose_token(kLogits, {.temperature = 1, .top_k = 1}, u), 1);
    EXPECT_EQ(choose_token(kLogits, {.temperature = 1, .top_p = 0}, u), 1);
    EXPECT_EQ(choose_token(kLogits, {.temperature = 1, .top_p = 1e-9}, u), 1);
  }
}

TEST(ChooseToken, DrawsByProbability) {
  for (double temperature : {0.5, 1.0, 4.0}) {
    const auto drawn = shares({.temperature = temperature}), expected = softmax(temperature);
    for (size_t i = 0; i < kLogits.size(); ++i)
      EXPECT_NEAR(drawn[i], expected[i], 2e-4) << temperature << " " << i;
  }
}

TEST(ChooseToken, ATinyTemperatureTakesTheLikeliest) {
  const auto drawn = shares({.temperature = 1e-300});
  EXPECT_NEAR(drawn[1], 0.5, 1e-3);  // two tokens are as likely
  EXPECT_NEAR(drawn[4], 0.5, 1e-3);
}

TEST(ChooseToken, TopKLeavesTheOthersOut) {
  const auto drawn = shares({.temperature = 1, .top_k = 3}), all = softmax(1);
  const double sum = all[1] + all[3] + all[4];
  for (size_t i : {0, 2, 5})
    EXPECT_EQ(drawn[i], 0);
  for (size_t i : {1, 3, 4})
    EXPECT_NEAR(drawn[i], all[i] / sum, 2e-4);
  EXPECT_EQ(shares({.temperature = 1, .top_k = 99}), shares({.temperature = 1}));
}

TEST(ChooseToken, TopPTakesAsFewAsAddUpToIt) {
  const auto all = softmax(1);
  const auto drawn = shares({.temperature = 1, .top_p = all[1] + all[4] + 0.01});
  for (size_t i : {0, 2, 5})
    EXPECT_EQ(drawn[i], 0);
  EXPECT_GT(drawn[3], 0);
  EXPECT_EQ(shares({.temperature = 1, .top_p = all[1] + all[4] - 0.01})[3], 0);
}

TEST(ChooseToken, TheLargestNumberStaysAmongTheTokens) {
  const double last = std::nextafter(1.0, 0.0);
  EXPECT_EQ(choose_token(kLogits, {.temperature = 1}, last), 5);
  EXPECT_EQ(choose_token(std::array{1.0f}, {.temperature = 1}, last), 0);
}

TEST(RandomOfToken, RepeatsAndDiffers) {
  EXPECT_EQ(random_of_token(1, 2, 3), random_of_token(1, 2, 3));
  EXPECT_NE(random_of_token(1, 2, 3), random_of_token(1, 2, 4));
  EXPECT_NE(random_of_token(1, 2, 3), random_of_token(1, 3, 3));
  EXPECT_NE(random_of_token(1, 2, 3), random_of_token(2, 2, 3));
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = random_of_token(7, 0, i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u / 10000;
  }
  EXPECT_NEAR(sum, 0.5, 0.02);
}

}  // namespace
}  // namespace ferry
