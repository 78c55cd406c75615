#include "src/engine/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ferry {
namespace {

OptimizerOptions options(double max_grad_norm, bool loss_scaling) {
  OptimizerOptions o;
  o.schedule = {.kind = ScheduleKind::constant, .learning_rate = 1e-3, .n_steps = 10};
  o.adamw.weight_decay = 0.1;
  o.max_grad_norm = max_grad_norm;
  o.loss_scaling = loss_scaling;
  return o;
}

TEST(Optimizer, ClipsAboveTheNormAndIsExactlyOneBelow) {
  Optimizer optimizer(options(1.0, false));
  EXPECT_EQ(optimizer.decide(1.0).decay.grad_multiplier, 1.0f);
  EXPECT_FALSE(optimizer.clipped());
  EXPECT_EQ(optimizer.decide(16.0).decay.grad_multiplier, static_cast<float>(1.0 / (4.0 + 1e-6)));
  EXPECT_TRUE(optimizer.clipped());
  EXPECT_DOUBLE_EQ(optimizer.grad_norm(), 4.0);
}

TEST(Optimizer, DecayIsOnlyForTensorsThatDecay) {
  Optimizer optimizer(options(0, false));
  Decision d = optimizer.decide(100.0);
  EXPECT_EQ(d.decay.grad_multiplier, 1.0f);
  EXPECT_EQ(d.decay.decay, static_cast<float>(1e-3 * 0.1));
  EXPECT_EQ(d.no_decay.decay, 0.0f);
  EXPECT_EQ(d.decay.step_size, d.no_decay.step_size);
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
  EXPECT_EQ(d.decay.grad_multiplier, 1.0f / 65536.0f);
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
