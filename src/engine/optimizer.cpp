#include "src/engine/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "simd/random.h"
#include "src/base/error.h"

namespace ferry {

void LossScale::good_step() {
  constexpr int64_t kGrowthInterval_steps = 2000;
  if (++n_good_steps < kGrowthInterval_steps) return;
  n_good_steps = 0;
  if (scale < 16777216.0f)
    scale *= 2;  // 2^24: beyond it every fp16 gradient has overflowed long ago
}

bool LossScale::overflow() {
  n_good_steps = 0;
  if (scale <= 1.0f) return false;
  scale /= 2;
  return true;
}

void Optimizer::change(std::string_view key, double value) {
  if (key == "learning_rate") {
    options_.schedule.learning_rate = value;
  } else if (key == "weight_decay") {
    options_.hyper.weight_decay = value;
  } else {
    FERRY_CHECK(key == "max_grad_norm", "{} of the optimizer", key);
    options_.max_grad_norm = value;
  }
}

simd::UpdateStep Optimizer::step_of(const UpdateGroup& group, float multiplier) const {
  Schedule schedule = options_.schedule;
  schedule.learning_rate = group.learning_rate.value_or(schedule.learning_rate) * group.lr_factor;
  simd::UpdateHyper hyper = options_.hyper;
  hyper.lr = schedule.rate_of(state_.n_updates);
  hyper.weight_decay = group.weight_decay.value_or(group.decays ? hyper.weight_decay : 0.0);
  simd::UpdateStep step = simd::make_step(options_.optim, hyper, state_.n_updates + 1, multiplier);
  // Forwards and backwards draw with keys of mix_key() too: no block has this number.
  constexpr uint64_t kNoBlock = ~uint64_t{0};
  step.noise =
      simd::mix_key(options_.seed, static_cast<uint64_t>(state_.n_updates), 0, kNoBlock, 0);
  return step;
}

std::vector<simd::UpdateStep> Optimizer::steps_ahead() const {
  if (options_.max_grad_norm > 0 || options_.loss_scaling) return {};
  return steps_of(1.0f);
}

std::vector<simd::UpdateStep> Optimizer::steps_of(float multiplier) const {
  std::vector<simd::UpdateStep> steps;
  for (const UpdateGroup& group : groups_)
    steps.push_back(step_of(group, multiplier));
  return steps;
}

Decision Optimizer::decide_each(const StepSums& sums) {
  last_norm_ = std::sqrt(sums.square_sum);
  last_clipped_ = false;
  if (std::isfinite(last_norm_))
    state_.n_skipped_in_a_row = 0;
  else
    ++state_.n_skipped_in_a_row;
  if (!sums.has_finite_block) return {.skip = true};
  last_rate_ = options_.schedule.rate_of(state_.n_updates);
  Decision decision = {.steps = steps_ahead()};
  ++state_.n_updates;
  return decision;
}

Decision Optimizer::decide(double square_sum) {
  const double scale = loss_scale();
  last_norm_ = std::sqrt(square_sum) / scale;
  last_clipped_ = false;
  if (!std::isfinite(last_norm_)) {
    ++state_.n_skipped_in_a_row;
    if (options_.loss_scaling) state_.loss_scale.overflow();
    return {.skip = true};
  }
  state_.n_skipped_in_a_row = 0;
  float factor = 1.0f;
  if (options_.max_grad_norm > 0 && last_norm_ > options_.max_grad_norm) {
    factor = static_cast<float>(options_.max_grad_norm / (last_norm_ + 1e-6));
    last_clipped_ = true;
  }
  last_rate_ = options_.schedule.rate_of(state_.n_updates);
  // The scale is a power of two: dividing by it is exact, and joins the factor.
  const float multiplier = factor / static_cast<float>(scale);
  Decision decision = {.steps = steps_of(multiplier)};
  ++state_.n_updates;
  if (options_.loss_scaling) state_.loss_scale.good_step();
  return decision;
}

}  // namespace ferry
