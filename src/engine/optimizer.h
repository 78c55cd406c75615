#pragma once
// The optimizer's decisions: loss scale, clip factor, learning rate, skip or go.
// Arithmetic on the states is offload's; this holds what is global to a step. decide() runs on the
// decision queue, inside the step. The stepping thread waits for the decision before the step ends.

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/core/tensor_table.h"
#include "offload/executor/executor.h"
#include "src/engine/schedule.h"

namespace ferry {

struct OptimizerOptions {
  simd::Optim optim = simd::Optim::adamw;
  simd::UpdateHyper hyper;  ///< lr is taken from the schedule
  Schedule schedule;
  double max_grad_norm = 1.0;  ///< 0: no clipping
  bool loss_scaling = false;   ///< fp16
  float initial_loss_scale = 65536.0f;
  uint64_t seed = 42;  ///< the seed of the noise that reduced states round by
};

/** fp16's dynamic loss scale: starts at 65536, doubles after 2000 good steps in a row, halves on an
 * overflow. */
struct LossScale {
  float scale = 65536.0f;
  int64_t n_good_steps = 0;

  void good_step();
  /** False when it cannot fall further: the model itself overflows. */
  bool overflow();
};

/** The state that goes from step to step beside those of the parameters; a checkpoint holds it. */
struct OptimizerState {
  LossScale loss_scale;
  int64_t n_updates = 0;  ///< steps that were not skipped
  int64_t n_skipped_in_a_row = 0;
};

class Optimizer {
 public:
  explicit Optimizer(const OptimizerOptions& options,
                     std::vector<UpdateGroup> groups = ModelTable().groups)
      : options_(options),
        groups_(std::move(groups)),
        state_{.loss_scale = {.scale = options.initial_loss_scale}} {}

  /** Decides from the square sum of the scaled gradients. Above max_norm the factor is
   * float(max_norm / (norm + 1e-6)), else exactly 1; a norm that is not finite skips the step: no
   * state, schedule or step count changes. */
  Decision decide(double square_sum);
  /** The steps that decide_each() will take, by group, without clipping and loss scaling: then a
   * step's update depends on no gradient but the block's own, and no norm is waited for. Else
   * empty. */
  std::vector<simd::UpdateStep> steps_ahead() const;
  /** Decides on a step in which each block whose gradients are finite has been updated already: it
   * counts if there was one. */
  Decision decide_each(const StepSums& sums);

  float loss_scale() const { return options_.loss_scaling ? state_.loss_scale.scale : 1.0f; }
  const OptimizerState& state() const { return state_; }
  void restore(const OptimizerState& state) { state_ = state; }
  /** A decision's steps: this one for each group. */
  std::vector<simd::UpdateStep> for_all_groups(const simd::UpdateStep& step) const {
    return std::vector(groups_.size(), step);
  }
  /** See Session::change_optimizer. */
  void change(std::string_view key, double value);
  /** The learning rate of the last update, where no group has its own. */
  double learning_rate() const { return last_rate_; }
  double grad_norm() const { return last_norm_; }  ///< unscaled, before clipping
  bool clipped() const { return last_clipped_; }
  int64_t n_skipped_in_a_row() const { return state_.n_skipped_in_a_row; }

 private:
  simd::UpdateStep step_of(const UpdateGroup& group, float multiplier) const;
  std::vector<simd::UpdateStep> steps_of(float multiplier) const;

  OptimizerOptions options_;
  std::vector<UpdateGroup> groups_;
  OptimizerState state_;
  double last_rate_ = 0;
  double last_norm_ = 0;
  bool last_clipped_ = false;
};

}  // namespace ferry
