// Expected values of the cases called Like... are those of scikit-learn 1.9.1 and SciPy
// 1.17.1; compare_metrics.py compares with the installed ones.

#include "src/data/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace ferry {
namespace {

constexpr double kTolerance = 1e-14;  // the same formulas in fp64, summed in another order

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

TEST(ConfusionMatrix, LikeSciKitLearn) {
  struct Case {
    const char* what;
    int32_t n_classes;
    std::vector<int32_t> actual, predicted;
    double accuracy, macro_f1, matthews;
  };
  const Case cases[] = {
      {"two classes",
       2,
       {0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0},
       {1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 1},
       0.5833333333333334,
       0.5804195804195804,
       0.1690308509457033},
      {"four classes",
       4,
       {1, 2, 2, 0, 0, 3, 2, 2, 0, 0, 2, 3, 1, 3, 1, 1},
       {0, 2, 3, 0, 0, 3, 2, 2, 0, 0, 1, 3, 1, 3, 1, 1},
       0.8125,
       0.8115079365079365,
       0.7631578947368421},
      {"a class never predicted",
       3,
       {0, 0, 1, 2, 2, 1},
       {0, 0, 0, 2, 0, 0},
       0.5,
       0.41269841269841273,
       0.3872983346207417},
      {"classes in neither",
       5,
       {0, 0, 1, 2, 2, 1},
       {0, 1, 1, 2, 0, 1},
       0.6666666666666666,
       0.6555555555555556,
       0.5222329678670935},
      {"a class that only predictions have",
       3,
       {0, 0, 1, 1},
       {0, 2, 1, 2},
       0.5,
       0.4444444444444444,
       0.4472135954999579},
      {"one class predicted", 2, {0, 1, 1, 0, 1}, {1, 1, 1, 1, 1}, 0.6, 0.375, 0},
      {"one class throughout", 2, {0, 0, 0}, {0, 0, 0}, 1, 1, 0},
      {"all right", 3, {0, 1, 2, 2}, {0, 1, 2, 2}, 1, 1, 1},
      {"all wrong", 2, {0, 1, 1, 0}, {1, 0, 0, 1}, 0, 0, -1},
      {"nothing", 3, {}, {}, 0, 0, 0},
  };
  for (const Case& c : cases) {
    ConfusionMatrix matrix(c.n_classes);
    for (size_t i = 0; i < c.actual.size(); ++i)
      matrix.add(c.actual[i], c.predicted[i]);
    EXPECT_NEAR(matrix.accuracy(), c.accuracy, kTolerance) << c.what;
    EXPECT_NEAR(matrix.macro_f1(), c.macro_f1, kTolerance) << c.what;
    EXPECT_NEAR(matrix.matthews_correlation(), c.matthews, kTolerance) << c.what;
  }
}

TEST(ConfusionMatrix, F1OfTheSecondLabelLikeSciKitLearn) {
  struct Case {
    std::vector<int32_t> actual, predicted;
    double f1;
  };
  const Case cases[] = {
      {{0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0},
       {1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 1},
       0.6153846153846154},
      {{0, 1, 1, 0, 1}, {1, 1, 1, 1, 1}, 0.75},
      {{0, 0, 0, 0}, {0, 0, 0, 1}, 0},
      {{0, 0, 0}, {0, 0, 0}, 0},
  };
  for (const Case& c : cases) {
    ConfusionMatrix matrix(2);
    for (size_t i = 0; i < c.actual.size(); ++i)
      matrix.add(c.actual[i], c.predicted[i]);
    EXPECT_NEAR(matrix.f1(1), c.f1, kTolerance);
  }
}

TEST(MultiLabelScores, ByHand) {
  MultiLabelScores scores(3);
  EXPECT_EQ(scores.micro_f1(), 0);
  scores.add(std::array{0, 2}, std::array{1.0f, -1.0f, 0.5f});  // exact: 2 right
  scores.add(std::array{1}, std::array{0.5f, 2.0f, -3.0f});     // 1 right, 1 too many
  scores.add(std::array{0, 1},
             std::array{4.0f, 0.0f, -3.0f});  // 1 right, 1 missed: 0 is not above the threshold
  scores.add({}, std::array{-1.0f, -1.0f, -1.0f});  // exact
  EXPECT_EQ(scores.exact_match(), 0.5);
  EXPECT_DOUBLE_EQ(scores.micro_f1(), 2 * 4.0 / (2 * 4 + 1 + 1));
}

TEST(MultiLabelScores, LikeSciKitLearn) {
  MultiLabelScores scores(4);  // the last label neither occurs nor is predicted
  scores.add(std::array{1, 2}, std::array{-2.28f, 0.76f, 0.01f, -0.05f});
  scores.add(std::array{2}, std::array{1.31f, 1.18f, 0.5f, -1.37f});
  scores.add(std::array{0, 2}, std::array{1.41f, -1.66f, 3.28f, -0.07f});
  scores.add(std::array{1, 2}, std::array{-0.91f, 0.9f, -0.73f, -0.94f});
  scores.add(std::array{2}, std::array{-1.8f, 1.09f, -1.9f, -0.56f});
  scores.add(std::array{0, 1}, std::array{-0.32f, -0.75f, 0.23f, -0.86f});
  scores.add(std::array{0, 2}, std::array{-1.16f, 0.59f, 2.9f, -1.5f});
  EXPECT_NEAR(scores.exact_match(), 0.2857142857142857, kTolerance);
  EXPECT_NEAR(scores.micro_f1(), 0.5833333333333334, kTolerance);
  EXPECT_NEAR(scores.macro_f1(), 0.40681818181818186, kTolerance);
  MultiLabelScores none(3);
  none.add({}, std::array{-1.0f, -1.0f, -1.0f});
  EXPECT_EQ(none.exact_match(), 1);
  EXPECT_EQ(none.micro_f1(), 0);
  EXPECT_EQ(none.macro_f1(), 0);
}

RegressionScores regression_of(std::span<const double> actual, std::span<const double> predicted) {
  RegressionScores scores;
  for (size_t i = 0; i < actual.size(); ++i)
    scores.add(actual[i], predicted[i]);
  return scores;
}

TEST(RegressionScores, LikeSciPy) {
  const RegressionScores scores = regression_of(
      std::array{4.0, 4.0, 1.0, 2.5, 3.0, 1.5, 4.0, 3.5, 4.5, 3.0, 3.5, 4.5},
      std::array{3.56, 3.0, 0.44, 2.73, 3.75, 2.78, 3.52, 3.75, 3.83, 3.79, 2.73, 3.74});
  EXPECT_EQ(scores.total(), 12);
  EXPECT_NEAR(scores.pearson().value(), 0.7514575997789227, kTolerance);
  EXPECT_NEAR(scores.spearman().value(), 0.5097891985987204, kTolerance);
  EXPECT_NEAR(scores.mean_squared_error(), 0.5247833333333333, kTolerance);
  EXPECT_NEAR(scores.mean_absolute_error(), 0.665, kTolerance);

  const std::array rising = {1.0, 2.0, 3.0, 4.0}, falling = {4.0, 3.0, 2.0, 1.0},
                   cubes = {1.0, 8.0, 27.0, 64.0};
  EXPECT_NEAR(regression_of(rising, cubes).pearson().value(), 0.9513698557924043, kTolerance);
  EXPECT_NEAR(regression_of(rising, cubes).spearman().value(), 1.0, kTolerance);
  EXPECT_NEAR(regression_of(rising, falling).spearman().value(), -1.0, kTolerance);
  EXPECT_NEAR(regression_of(std::array{1.0, 1.0, 1.0, 2.0}, std::array{3.0, 3.0, 5.0, 5.0})
                  .spearman()
                  .value(),
              0.5773502691896257, kTolerance);
}

TEST(RegressionScores, UndefinedCorrelationsAreLeftOut) {
  const std::array same = {0.1, 0.1, 0.1}, rising = {1.0, 2.0, 4.0};  // 0.1 * 3 / 3 is not 0.1
  const std::array broken = {1.0, std::numeric_limits<double>::quiet_NaN(), 4.0};
  for (const auto& [actual, predicted] : {std::pair{same, rising},
                                          {rising, same},
                                          {same, same},
                                          {broken, rising},
                                          {rising, broken}}) {
    EXPECT_EQ(regression_of(actual, predicted).pearson(), std::nullopt);
    EXPECT_EQ(regression_of(actual, predicted).spearman(), std::nullopt);
  }
  EXPECT_EQ(regression_of(std::array{1.0}, std::array{2.0}).spearman(), std::nullopt);
  EXPECT_EQ(RegressionScores().spearman(), std::nullopt);
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
