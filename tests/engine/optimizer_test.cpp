#include "src/engine/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "simd/update/adamw.h"

namespace ferry {
namespace {

OptimizerOptions options(double max_grad_norm, bool loss_scaling) {
  OptimizerOptions o;
  o.schedule = {.kind = ScheduleKind::constant, .learning_rate = 1e-3, .n_steps = 10};
  o.hyper.weight_decay = 0.1;
  o.max_grad_norm = max_grad_norm;
  o.loss_scaling = loss_scaling;
  return o;
}

TEST(Optimizer, ClipsAboveTheNormAndIsExactlyOneBelow) {
  Optimizer optimizer(options(1.0, false));
  EXPECT_EQ(optimizer.decide(1.0).steps[0].grad_multiplier, 1.0f);
  EXPECT_FALSE(optimizer.clipped());
  EXPECT_EQ(optimizer.decide(16.0).steps[0].grad_multiplier,
            static_cast<float>(1.0 / (4.0 + 1e-6)));
  EXPECT_TRUE(optimizer.clipped());
  EXPECT_DOUBLE_EQ(optimizer.grad_norm(), 4.0);
}

TEST(Optimizer, StepsAreKnownAheadWithoutClippingAndLossScaling) {
  EXPECT_TRUE(Optimizer(options(1.0, false)).steps_ahead().empty());
  EXPECT_TRUE(Optimizer(options(0, true)).steps_ahead().empty());
  Optimizer ahead(options(0, false)), after(options(0, false));
  for (int step = 0; step < 3; ++step) {
    const auto steps = ahead.steps_ahead();
    const Decision decision = ahead.decide_each({.square_sum = 9.0, .has_finite_block = true});
    const Decision expected = after.decide(9.0);
    ASSERT_EQ(steps.size(), expected.steps.size());
    for (size_t g = 0; g < steps.size(); ++g) {
      EXPECT_EQ(std::memcmp(&steps[g], &expected.steps[g], sizeof steps[g]), 0);
      EXPECT_EQ(std::memcmp(&steps[g], &decision.steps[g], sizeof steps[g]), 0);
    }
    EXPECT_DOUBLE_EQ(ahead.grad_norm(), 3.0);
  }
  // A step counts if a block of it was updated; two in a row may be a model that diverges.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(ahead.decide_each({.square_sum = nan, .has_finite_block = true}).skip);
  EXPECT_EQ(ahead.state().n_updates, 4);
  EXPECT_TRUE(ahead.decide_each({.square_sum = nan, .has_finite_block = false}).skip);
  EXPECT_EQ(ahead.state().n_updates, 4);
  EXPECT_EQ(ahead.n_skipped_in_a_row(), 2);
}

TEST(Optimizer, DecayIsOnlyForTensorsThatDecay) {
  Optimizer optimizer(options(0, false));
  Decision d = optimizer.decide(100.0);
  EXPECT_EQ(d.steps[0].grad_multiplier, 1.0f);
  EXPECT_EQ(d.steps[0].scalars[simd::Adamw::decay], static_cast<float>(1e-3 * 0.1));
  EXPECT_EQ(d.steps[1].scalars[simd::Adamw::decay], 0.0f);
  EXPECT_EQ(d.steps[0].scalars[simd::Adamw::step_size], d.steps[1].scalars[simd::Adamw::step_size]);
}

TEST(Optimizer, EachGroupHasItsRateAndDecayUnderOneSchedule) {
  OptimizerOptions o = options(0, false);
  o.schedule = {
      .kind = ScheduleKind::linear, .learning_rate = 1e-3, .n_warmup_steps = 2, .n_steps = 10};
  Optimizer optimizer(o, {{.decays = true},
                          {.decays = false, .lr_factor = 0.25},
                          {.learning_rate = 5e-2, .weight_decay = 0.5},
                          {.decays = false, .weight_decay = 0.5}});
  for (int t = 1; t <= 4; ++t) {
    const double factor = o.schedule.rate_of(t - 1) / 1e-3;
    const Decision d = optimizer.decide(1.0);
    EXPECT_DOUBLE_EQ(optimizer.learning_rate(), 1e-3 * factor);
    const auto step = [&](double lr, double decay) {
      return simd::make_step(simd::Optim::adamw, {.lr = lr * factor, .weight_decay = decay}, t,
                             1.0f);
    };
    const simd::UpdateStep expected[] = {step(1e-3, 0.1), step(0.25e-3, 0), step(5e-2, 0.5),
                                         step(1e-3, 0.5)};
    ASSERT_EQ(d.steps.size(), 4u);
    for (size_t g = 0; g < 4; ++g) {
      EXPECT_FLOAT_EQ(d.steps[g].scalars[simd::Adamw::step_size],
                      expected[g].scalars[simd::Adamw::step_size])
          << g;
      EXPECT_FLOAT_EQ(d.steps[g].scalars[simd::Adamw::decay],
                      expected[g].scalars[simd::Adamw::decay])
          << g;
    }
  }
  // A change in the middle of a run reaches the groups that have no value of their own.
  optimizer.change("learning_rate", 2e-3);
  optimizer.change("weight_decay", 0.2);
  const double factor = o.schedule.rate_of(4) / 1e-3;
  const Decision d = optimizer.decide(1.0);
  EXPECT_FLOAT_EQ(d.steps[0].scalars[simd::Adamw::decay], static_cast<float>(2e-3 * factor * 0.2));
  EXPECT_FLOAT_EQ(d.steps[1].scalars[simd::Adamw::step_size],
                  d.steps[0].scalars[simd::Adamw::step_size] / 4);
  EXPECT_FLOAT_EQ(d.steps[2].scalars[simd::Adamw::decay], static_cast<float>(5e-2 * factor * 0.5));
}

TEST(Optimizer, ANonFiniteNormSkipsAndCountsNothing) {
  for (bool scaling : {false, true}) {
    Optimizer optimizer(options(1.0, scaling));
    const float scale = optimizer.loss_scale();
    for (double bad :
         {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
      EXPECT_TRUE(optimizer.decide(bad).skip);
      EXPECT_EQ(optimizer.state().n_updates, 0);
    }
    EXPECT_EQ(optimizer.n_skipped_in_a_row(), 2);
    EXPECT_EQ(optimizer.loss_scale(), scaling ? scale / 4 : 1.0f);
    EXPECT_FALSE(optimizer.decide(1.0).skip);
    EXPECT_EQ(optimizer.state().n_updates, 1);
    EXPECT_EQ(optimizer.n_skipped_in_a_row(), 0);
  }
}

TEST(Optimizer, TheLossScaleIsTakenOutOfNormAndGradients) {
  Optimizer optimizer(options(1.0, true));
  ASSERT_EQ(optimizer.loss_scale(), 65536.0f);
  Decision d = optimizer.decide(65536.0 * 65536.0 * 0.25);
  EXPECT_DOUBLE_EQ(optimizer.grad_norm(), 0.5);
  EXPECT_EQ(d.steps[0].grad_multiplier, 1.0f / 65536.0f);
}

TEST(LossScale, DoublesAfterTwoThousandGoodStepsInARow) {
  LossScale scale;
  for (int i = 0; i < 1999; ++i)
    scale.good_step();
  EXPECT_EQ(scale.scale, 65536.0f);
  EXPECT_TRUE(scale.overflow());
  EXPECT_EQ(scale.scale, 32768.0f);
  for (int i = 0; i < 2000; ++i)
    scale.good_step();
  EXPECT_EQ(scale.scale, 65536.0f);
  for (int i = 0; i < 16; ++i)
    EXPECT_TRUE(scale.overflow());
  EXPECT_EQ(scale.scale, 1.0f);
  EXPECT_FALSE(scale.overflow()) << "at 1 the model itself overflows";
}

}  // namespace
}  // namespace ferry
