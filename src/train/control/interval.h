#pragma once
// An option of type interval (save_steps, eval_steps): every so many steps, or every so much time.

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

#include "src/config/config.h"

namespace ferry {

class Interval {
 public:
  using Clock = std::chrono::steady_clock;

  /** `key`: not auto. */
  Interval(const config::Config& config, std::string_view key, int64_t total_steps)
      : time_(config.maybe_time(key)),
        n_steps_(time_ ? 0 : std::max<int64_t>(1, config.steps(key, total_steps))) {}

  /** True after step `step` when the last time was at `last`. */
  bool is_over(int64_t step, Clock::time_point last) const {
    return time_ ? Clock::now() - last >= std::chrono::seconds(time_->count) : step % n_steps_ == 0;
  }

 private:
  std::optional<config::Seconds> time_;
  int64_t n_steps_;  ///< the interval in steps, where it is no time
};

}  // namespace ferry
