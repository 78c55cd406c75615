#include "src/engine/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ferry {

double Schedule::rate_of(int64_t step) const {
  if (step < n_warmup_steps)
    return learning_rate * static_cast<double>(step) / static_cast<double>(n_warmup_steps);
  const auto span = static_cast<double>(std::max<int64_t>(1, n_steps - n_warmup_steps));
  const double progress = std::clamp(static_cast<double>(step - n_warmup_steps) / span, 0.0, 1.0);
  switch (kind) {
    case ScheduleKind::linear:
      return learning_rate * (1.0 - progress);
    case ScheduleKind::cosine:
      return learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    case ScheduleKind::constant:
      return learning_rate;
  }
  return learning_rate;
}

int64_t warmup_steps_of(double option, int64_t n_steps) {
  if (option < 1) return static_cast<int64_t>(std::ceil(option * static_cast<double>(n_steps)));
  return static_cast<int64_t>(option);
}

}  // namespace ferry
