#include "src/data/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace ferry {
namespace {

TEST(Argmax, FirstOfEqualsAndNoNaN) {
  const float nan = std::nanf("");
  EXPECT_EQ(argmax(std::array{1.0f, 3.0f, 3.0f}), 1);
  EXPECT_EQ(argmax(std::array{nan, -5.0f, nan, -4.0f}), 3);
  EXPECT_EQ(argmax(std::array{-INFINITY}), 0);
}

TEST(ConfusionMatrix, CountsAndDraws) {
  ConfusionMatrix matrix(3);
  EXPECT_EQ(matrix.accuracy(), 0);
  const std::pair<int, int> pairs[] = {{0, 0}, {0, 0}, {0, 1}, {1, 1},
                                       {2, 0}, {2, 2}, {2, 2}, {2, 2}};
  for (auto [actual, predicted] : pairs)
    matrix.add(actual, predicted);
  EXPECT_EQ(matrix.at(0, 0), 2);
  EXPECT_EQ(matrix.at(2, 0), 1);
  EXPECT_EQ(matrix.at(0, 2), 0);
  EXPECT_EQ(matrix.total(), 8);
  EXPECT_EQ(matrix.accuracy(), 0.75);
  const std::vector<std::string> names = {"a", "bb", "ccc"};
  EXPECT_EQ(matrix.to_text(names),
            "actual \\ predicted    a   bb  ccc\n"
            "                 a    2    1    0\n"
            "                bb    0    1    0\n"
            "               ccc    1    0    3\n");
}

TEST(MultiLabelScores, ByHand) {
  MultiLabelScores scores;
  EXPECT_EQ(scores.micro_f1(), 0);
  scores.add(std::array{0, 2}, std::array{1.0f, -1.0f, 0.5f});  // exact: 2 right
  scores.add(std::array{1}, std::array{0.5f, 2.0f, -3.0f});     // 1 right, 1 too many
  scores.add(std::array{0, 1},
             std::array{4.0f, 0.0f, -3.0f});  // 1 right, 1 missed: 0 is not above the threshold
  scores.add({}, std::array{-1.0f, -1.0f, -1.0f});  // exact
  EXPECT_EQ(scores.exact_match(), 0.5);
  EXPECT_DOUBLE_EQ(scores.micro_f1(), 2 * 4.0 / (2 * 4 + 1 + 1));
}

TEST(RegressionScores, ByHand) {
  RegressionScores scores;
  EXPECT_EQ(scores.pearson(), std::nullopt);
  const std::pair<double, double> pairs[] = {{1, 2}, {2, 1}, {3, 4}, {4, 3}};
  for (auto [actual, predicted] : pairs)
    scores.add(actual, predicted);
  EXPECT_DOUBLE_EQ(scores.mean_absolute_error(), 1.0);
  EXPECT_DOUBLE_EQ(scores.mean_squared_error(), 1.0);
  EXPECT_NEAR(scores.pearson().value(), 0.6, 1e-15);  // covariance 3, variances 5 and 5
}

TEST(RegressionScores, LargeMeansDoNotCancel) {
  RegressionScores scores;
  for (auto [actual, predicted] : {std::pair{1.0, 2.0}, {2.0, 1.0}, {3.0, 4.0}, {4.0, 3.0}})
    scores.add(1e9 + actual, 1e9 + predicted);
  EXPECT_NEAR(scores.pearson().value(), 0.6, 1e-6);
  RegressionScores constant;
  constant.add(1, 5);
  constant.add(2, 5);
  EXPECT_EQ(constant.pearson(), std::nullopt);
}

}  // namespace
}  // namespace ferry
