#pragma once
// Steps that were timed before runs of this machine began (src/plan/plan_choice.h). The machine's
// profile keeps them. A later request of the same kind is promised by them: what the cost model
// says of a plan is multiplied by the ratio of both times where that ratio is known best.
//
// All of them are timed in one way: typical micro-batches, one step after the other, nothing of a
// run beside them. A run's own steps are never learnt, so its end changes nothing here: texts of
// other lengths, evaluations, checkpoints and samples are in their times. Of two that were timed of
// the same plan the newer one counts alone, for a machine's clocks and settings change. A step of a
// GPU that another program had is not kept.

#include <optional>
#include <string>
#include <vector>

#include "src/plan/plan.h"

namespace ferry {

/** The steps that tell of one request. */
class LearntSteps {
 public:
  /** Those of the request's machine. */
  LearntSteps(const ModelTable& model, const PlanRequest& request);

  bool has_any() const { return !steps_.empty(); }
  /** True where such a plan was timed: of the same micro-batch and choice, with nearly as many
   * blocks on the GPU. */
  bool knows(const Plan& plan) const { return find(plan) != nullptr; }
  /** The ratio of the time that a step takes to the time that the cost model tells: that of a step
   * of such a plan, else the mean of steps with the same micro-batch, else the mean of all steps.
   */
  double ratio_of(const Plan& plan) const;
  /** Sets the predicted time right, and says whether such a step was timed. */
  void correct(Plan& plan) const;

  /** A step of this plan took `step_s`; `plan` has the cost model's own prediction. */
  LearntStep step_of(const Plan& plan, double step_s, std::string measured) const;
  /** As put_learnt(). */
  void add(LearntStep step);

 private:
  const LearntStep* find(const Plan& plan) const;

  std::string run_;
  std::vector<LearntStep> steps_;
};

/** The plan that steps which were timed show to be the fastest, of those that predictions alone put
 * close to the fastest; nothing where none was timed. */
std::optional<Plan> find_learnt_plan(const ModelTable& model, const PlanRequest& request);

/** Adds a step, in place of an older one of the same plan. A profile keeps the newest ones only. */
void put_learnt(MachineProfile& profile, LearntStep step);

}  // namespace ferry
