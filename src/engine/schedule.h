#pragma once
// Learning-rate schedules, by the names and formulas of transformers' get_scheduler and (noam,
// exponential) BMTrain's lr_scheduler. Pure functions of the step.

#include <cstdint>
#include <optional>
#include <string_view>

namespace ferry {

enum class ScheduleKind : uint8_t {
  linear,
  cosine,
  cosine_with_min_lr,
  cosine_with_restarts,
  polynomial,
  inverse_sqrt,
  constant,
  noam,
  exponential,
  wsd
};
/** The name in the option lr_scheduler_type: "cosine_with_restarts". */
std::string_view name_of(ScheduleKind kind);
std::optional<ScheduleKind> parse_schedule(std::string_view name);

struct Schedule {
  ScheduleKind kind = ScheduleKind::linear;
  double learning_rate = 2e-5;  ///< peak
  int64_t n_warmup_steps = 0;
  int64_t n_steps = 1;        ///< steps of the run
  double min_lr_rate = 0;     ///< the rate that is left at the end, as a share of the peak
  double num_cycles = 1;      ///< cosine_with_restarts
  double power = 1;           ///< polynomial
  double gamma = 0.95;        ///< exponential: factor of each step
  int64_t n_decay_steps = 0;  ///< wsd: the last steps, half a cosine

  /** The rate of optimizer step `step` = 0, 1, ...: warm-up is learning_rate x step /
   * n_warmup_steps (noam: of learning_rate / sqrt(n_warmup_steps); wsd: from min_lr_rate), then as
   * the kind says, to the rate of the end at n_steps and after. Skipped steps do not count. */
  double rate_of(int64_t step) const;

 private:
  double factor_of(int64_t step) const;
};

}  // namespace ferry
