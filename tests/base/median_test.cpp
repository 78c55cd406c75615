#include "src/base/median.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(Median, IsTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 3}), 3);
  EXPECT_EQ(median({9, 1}), 5);
  EXPECT_EQ(median({4, 1, 9, 2}), 3);
  EXPECT_EQ(median({2, 2, 7, 7, 1, 9}), 4.5);
}

}  // namespace
}  // namespace ferry
