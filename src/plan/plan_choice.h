#pragma once
// The choice between plans that are promised nearly the same time: a step of two or more of them is
// timed, and the fastest is taken. A run makes it once, at its start, and tests/perf/step_bench.cpp
// too: whoever can take a step gives the function that times it. No torch, no device.
//
//   PlanChoice choice = choose_plan(model, request, plan, {.run_s = seconds, .time_step = ...});
//   for (const Rival& rival : choice.tried) ...

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/plan/choosing_progress.h"
#include "src/plan/learnt_steps.h"
#include "src/plan/plan.h"

namespace ferry {

/** A step of a plan as it was timed. */
struct TimedStep {
  std::optional<double> step_s;  ///< of typical micro-batches; nothing: the plan does not fit
  double took_s = 0;  ///< for all of it, from opening the plan's memory to giving it back
};

/** One of the plans to choose from. */
struct Rival {
  Plan plan;
  double promised_s = 0;         ///< a step, as it was promised before
  std::optional<double> step_s;  ///< as it was timed; nothing: the plan did not fit
};

/** The fastest of plans that were timed; null where none was, or none fits. */
const Rival* fastest_of(std::span<const Rival> tried);

struct PlanChoice {
  Plan plan;                 ///< its predicted time is what was learnt
  std::vector<Rival> tried;  ///< in this order; empty: nothing was timed
  std::vector<LearntStep> learnt;
};

struct ChoosingOptions {
  /** Seconds that the run is promised to take: choosing takes kChoosing_share of them at most, and
   * kChoosing_s_most. */
  double run_s = 0;
  /** Throws what would end the run, too. */
  std::function<TimedStep(const Plan&)> time_step;
  /** Called before the first, with the most seconds that choosing may take. */
  std::function<void(double most_s)> begin = {};
  /** Called before each that is timed. */
  std::function<void(const ChoosingProgress&, const Plan&)> next = {};
  std::string now;  ///< "2026-11-22T10:00:00Z", for the profile
};

inline constexpr double kChoosing_share = 0.05;
/** Nobody wants to wait longer for the first step, however long the run. */
inline constexpr double kChoosing_s_most = 300;

/** The fastest of the request's plans that are promised within kRival_share of the fastest; `plan`,
 * which make_plan() gives, where there is nothing to choose, or the run is too short, or the
 * machine has learnt such steps before. A plan is timed as long as it may still be the fastest, by
 * what the others have shown; at most four are. Plans with states on a drive are not timed: each
 * would write all of them. */
PlanChoice choose_plan(const ModelTable& model,
                       const PlanRequest& request,
                       Plan plan,
                       const ChoosingOptions& options);

}  // namespace ferry
