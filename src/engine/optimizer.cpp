#include "src/engine/optimizer.h"

#include <fmt/format.h>

#include <cmath>

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
    options_.adamw.weight_decay = value;
  } else {
    FERRY_CHECK(key == "max_grad_norm", "{} of the optimizer", key);
    options_.max_grad_norm = value;
  }
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
  simd::AdamwHyper hyper = options_.adamw;
  hyper.lr = last_rate_ = options_.schedule.rate_of(state_.n_updates);
  ++state_.n_updates;
  // The scale is a power of two: dividing by it is exact, and joins the factor.
  const float multiplier = factor / static_cast<float>(scale);
  Decision decision;
  decision.decay = simd::make_adamw_step(hyper, state_.n_updates, multiplier);
  hyper.weight_decay = 0;
  decision.no_decay = simd::make_adamw_step(hyper, state_.n_updates, multiplier);
  if (options_.loss_scaling) state_.loss_scale.good_step();
  return decision;
}

}  // namespace ferry
