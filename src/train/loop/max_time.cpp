#include "src/train/loop/max_time.h"

#include <fmt/format.h>

namespace ferry {

void MaxTime::after_step(int64_t n_steps) {
  const int64_t most_s = job_.config.integer("max_time");
  if (most_s == 0 || n_steps == 0 || n_steps >= job_.n_steps) return;
  if (metrics_.step_seconds() < static_cast<double>(most_s)) return;
  progress_.log_line(fmt::format("max_time of {} is over: step {} of {} is the last",
                                 term::format_duration(static_cast<double>(most_s)), n_steps,
                                 job_.n_steps));
  job_.n_steps = n_steps;
}

}  // namespace ferry
