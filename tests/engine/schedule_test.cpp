#include "src/engine/schedule.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

// Values of transformers.get_scheduler at learning rate 1, 10 warm-up steps of 110.
TEST(Schedule, FollowsHuggingFace) {
  Schedule s{
      .kind = ScheduleKind::linear, .learning_rate = 1.0, .n_warmup_steps = 10, .n_steps = 110};
  EXPECT_DOUBLE_EQ(s.rate_of(0), 0.0);
  EXPECT_DOUBLE_EQ(s.rate_of(5), 0.5);
  EXPECT_DOUBLE_EQ(s.rate_of(10), 1.0);
  EXPECT_DOUBLE_EQ(s.rate_of(60), 0.5);
  EXPECT_DOUBLE_EQ(s.rate_of(110), 0.0);
  EXPECT_DOUBLE_EQ(s.rate_of(200), 0.0) << "a run that goes on does not climb again";
  s.kind = ScheduleKind::cosine;
  EXPECT_DOUBLE_EQ(s.rate_of(5), 0.5);
  EXPECT_NEAR(s.rate_of(35), 0.8535533905932737, 1e-15);
  EXPECT_NEAR(s.rate_of(60), 0.5, 1e-15);
  EXPECT_NEAR(s.rate_of(500), 0.0, 1e-15);
  s.kind = ScheduleKind::constant;
  EXPECT_DOUBLE_EQ(s.rate_of(9), 0.9);
  EXPECT_DOUBLE_EQ(s.rate_of(1000), 1.0);
}

TEST(Schedule, WarmupIsACountOrAShare) {
  EXPECT_EQ(warmup_steps_of(0, 100), 0);
  EXPECT_EQ(warmup_steps_of(0.03, 101), 4);
  EXPECT_EQ(warmup_steps_of(7, 100), 7);
}

}  // namespace
}  // namespace ferry
