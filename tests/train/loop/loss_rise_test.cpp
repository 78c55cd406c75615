// When the losses of a run that came to its end say that it went wrong.

#include "src/train/loop/loss_rise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ferry {
namespace {

const double kGuessing = std::log(4.0);  // among four labels

TEST(LossRise, IsOfTheFirstStepAndTheLastOnes) {
  std::vector<double> losses(60, 60.0);
  losses[0] = 1.4;
  losses[1] = 436;
  const auto rise = rise_of_loss(losses, 2, kGuessing);
  ASSERT_TRUE(rise.has_value());
  EXPECT_EQ(rise->first, 1.4);
  EXPECT_EQ(rise->last, 60);
  losses.back() = std::nan("");  // a step that fp16 skipped
  EXPECT_TRUE(rise_of_loss(losses, 2, kGuessing).has_value());
}

TEST(LossRise, IsNoneOfAGoodRun) {
  for (const double guessing : {kGuessing, 0.0}) {
    EXPECT_FALSE(rise_of_loss({}, 2, guessing).has_value());
    EXPECT_FALSE(rise_of_loss(std::vector{1.4}, 2, guessing).has_value());
    EXPECT_FALSE(rise_of_loss(std::vector{1.4, 1.2, 0.9, 0.4}, 2, guessing).has_value());
    EXPECT_FALSE(rise_of_loss(std::vector{std::nan(""), std::nan("")}, 2, guessing).has_value());
  }
  // A trained classifier may have had one easy batch: it still does better than guessing.
  EXPECT_FALSE(rise_of_loss(std::vector{0.01, 0.3, 0.2}, 2, kGuessing).has_value());
  EXPECT_TRUE(rise_of_loss(std::vector{0.01, 3.0, 2.0}, 2, kGuessing).has_value());
  EXPECT_FALSE(rise_of_loss(std::vector{0.1, 0.5, 0.6}, 10, 0).has_value());
  EXPECT_TRUE(rise_of_loss(std::vector{0.1, 900.0, 90.0}, 10, 0).has_value());
  EXPECT_TRUE(rise_of_loss(std::vector{2.5, 9.0, 8.0}, 2, 0).has_value());
}

}  // namespace
}  // namespace ferry
