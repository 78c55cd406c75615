#include "src/engine/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace ferry {
namespace {

constexpr std::array<std::string_view, 10> kNames = {
    "linear",      "cosine",       "cosine_with_min_lr", "cosine_with_restarts",
    "polynomial",  "inverse_sqrt", "constant",           "noam",
    "exponential", "wsd"};

/** 1 at 0, 0 at 1. */
double half_cosine(double progress) {
  return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace

std::string_view name_of(ScheduleKind kind) {
  return kNames.at(static_cast<size_t>(kind));
}

std::optional<ScheduleKind> parse_schedule(std::string_view name) {
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return {};
  return static_cast<ScheduleKind>(found - kNames.begin());
}

double Schedule::rate_of(int64_t step) const {
  return learning_rate * factor_of(step);
}

double Schedule::factor_of(int64_t step) const {
  const auto at = static_cast<double>(step), warmup = static_cast<double>(n_warmup_steps);
  const auto to_min = [this](double factor) { return factor * (1 - min_lr_rate) + min_lr_rate; };
  if (step < n_warmup_steps) {
    if (kind == ScheduleKind::noam) return at / warmup / std::sqrt(warmup);
    return kind == ScheduleKind::wsd ? to_min(at / warmup) : at / warmup;
  }
  const auto span = static_cast<double>(std::max<int64_t>(1, n_steps - n_warmup_steps));
  const double progress = std::clamp((at - warmup) / span, 0.0, 1.0);
  switch (kind) {
    case ScheduleKind::linear:
      return 1.0 - progress;
    case ScheduleKind::cosine:
      return half_cosine(progress);
    case ScheduleKind::cosine_with_min_lr:
      return to_min(half_cosine(progress));
    case ScheduleKind::cosine_with_restarts:
      return progress >= 1 ? 0 : half_cosine(std::fmod(num_cycles * progress, 1.0));
    case ScheduleKind::polynomial:
      return to_min(std::pow(1.0 - progress, power));
    case ScheduleKind::inverse_sqrt: {
      // Without warm-up transformers takes 10,000 as its time scale.
      const double scale = n_warmup_steps > 0 ? warmup : 10000;
      return 1.0 / std::sqrt((at - warmup + scale) / scale);
    }
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::noam:
      return 1.0 / std::sqrt(std::max(at, 1.0));
    case ScheduleKind::exponential:
      return std::pow(gamma, at - warmup);
    case ScheduleKind::wsd: {
      const auto decay = static_cast<double>(std::max<int64_t>(1, n_decay_steps));
      return to_min(
          half_cosine(std::clamp((at - static_cast<double>(n_steps)) / decay + 1, 0.0, 1.0)));
    }
  }
  return 1;
}

}  // namespace ferry
