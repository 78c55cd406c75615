#include "src/engine/schedule.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

namespace ferry {
namespace {

Schedule schedule(ScheduleKind kind) {
  return {.kind = kind,
          .learning_rate = 1.0,
          .n_warmup_steps = 10,
          .n_steps = 110,
          .min_lr_rate = 0.1,
          .num_cycles = 3,
          .power = 2,
          .n_decay_steps = 30};
}

// Rates of transformers 5's get_scheduler at these steps: learning rate 1, 10 warm-up steps of 110,
// min_lr_rate 0.1 (polynomial: lr_end 0.1), 3 cycles, power 2, 30 steps of decay.
constexpr std::array<int64_t, 8> kSteps = {0, 5, 10, 35, 60, 85, 105, 110};
struct Curve {
  ScheduleKind kind;
  std::array<double, 8> rates;
};
constexpr Curve kCurves[] = {
    {ScheduleKind::linear, {0, 0.5, 1, 0.75, 0.5, 0.25, 0.05, 0}},
    {ScheduleKind::cosine,
     {0, 0.5, 1, 0.8535533905932737, 0.5, 0.14644660940672627, 0.00615582970243117, 0}},
    {ScheduleKind::cosine_with_min_lr,
     {0, 0.5, 1, 0.8681980515339464, 0.55, 0.23180194846605365, 0.10554024673218806, 0.1}},
    {ScheduleKind::cosine_with_restarts,
     {0, 0.5, 1, 0.14644660940672627, 0.5, 0.8535533905932737, 0.054496737905816384, 0}},
    {ScheduleKind::polynomial, {0, 0.5, 1, 0.60625, 0.325, 0.15625, 0.10225, 0.1}},
    {ScheduleKind::inverse_sqrt,
     {0, 0.5, 1, 0.5345224838248488, 0.4082482904638631, 0.34299717028501764, 0.3086066999241838,
      0.30151134457776363}},
    {ScheduleKind::constant, {0, 0.5, 1, 1, 1, 1, 1, 1}},
    {ScheduleKind::wsd, {0.1, 0.55, 1, 1, 1, 0.9397114317029974, 0.16028856829700258, 0.1}},
};

TEST(Schedule, FollowsHuggingFace) {
  for (const Curve& curve : kCurves)
    for (size_t i = 0; i < kSteps.size(); ++i)
      EXPECT_NEAR(schedule(curve.kind).rate_of(kSteps[i]), curve.rates[i], 1e-14)
          << name_of(curve.kind) << " at " << kSteps[i];
}

// transformers lets a cosine climb again after the last step.
TEST(Schedule, ARunThatGoesOnStaysAtItsEnd) {
  for (const Curve& curve : kCurves) {
    if (curve.kind == ScheduleKind::inverse_sqrt) continue;
    EXPECT_DOUBLE_EQ(schedule(curve.kind).rate_of(500), schedule(curve.kind).rate_of(110))
        << name_of(curve.kind);
  }
}

// BMTrain 1.0: Noam and Exponential.
TEST(Schedule, FollowsBmTrain) {
  EXPECT_DOUBLE_EQ(schedule(ScheduleKind::noam).rate_of(5), 0.5 / std::sqrt(10.0));
  EXPECT_DOUBLE_EQ(schedule(ScheduleKind::noam).rate_of(10), 1 / std::sqrt(10.0));
  EXPECT_DOUBLE_EQ(schedule(ScheduleKind::noam).rate_of(100), 0.1);
  EXPECT_DOUBLE_EQ(schedule(ScheduleKind::exponential).rate_of(5), 0.5);
  EXPECT_DOUBLE_EQ(schedule(ScheduleKind::exponential).rate_of(12), 0.95 * 0.95);
}

TEST(Schedule, WithoutWarmupTheFirstStepHasTheWholeRate) {
  for (int k = 0; k <= static_cast<int>(ScheduleKind::wsd); ++k) {
    Schedule s = schedule(static_cast<ScheduleKind>(k));
    s.n_warmup_steps = 0;
    EXPECT_DOUBLE_EQ(s.rate_of(0), 1.0) << name_of(s.kind);
    EXPECT_EQ(parse_schedule(name_of(s.kind)), s.kind);
  }
  EXPECT_FALSE(parse_schedule("triangle"));
}

}  // namespace
}  // namespace ferry
