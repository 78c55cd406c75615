#pragma once
// Learning-rate schedules (the names and shapes of Hugging Face's get_scheduler). Pure functions of
// the step.

#include <cstdint>
#include <string_view>

namespace ferry {

enum class ScheduleKind : uint8_t { linear, cosine, constant };

struct Schedule {
  ScheduleKind kind = ScheduleKind::linear;
  double learning_rate = 2e-5;  ///< peak
  int64_t n_warmup_steps = 0;
  int64_t n_steps = 1;  ///< of the run

  /** The rate of optimizer step `step` = 0, 1, ...: warm-up is learning_rate x step /
   * n_warmup_steps, then linear or half a cosine down to 0 at n_steps, or constant. Skipped steps
   * do not count. */
  double rate_of(int64_t step) const;
};

/** Steps out of an option that is a count (>= 1) or a share of the run ([0, 1)). */
int64_t warmup_steps_of(double option, int64_t n_steps);

}  // namespace ferry
