#pragma once
// The choices that only several ranks have: samples or blocks to be split, how often ranks gather
// resident weights (ZeRO-2 or ZeRO-3), and how they reduce gradients. Private to src/plan.

#include <optional>

#include "src/plan/plan.h"

namespace ferry {

/** The share of a step's time that the bits of one rank may cost before they are given up. */
inline constexpr double kOrdered_share = 0.03;

struct SettledRanks {
  PlanRequest request;
  /** The plan of that request. Nothing: no plan fits, or there was nothing to settle. */
  std::optional<Plan> plan = {};
};

/** The request with these choices made, where it leaves them open: by the time of a step, or
 * without times the first with which a plan fits. Of one rank the request as it is. */
SettledRanks settle_rank_choices(const ModelTable& model, const PlanRequest& request);

/** A text of what was chosen, for the line that says why; empty where nothing is unusual. */
std::string rank_choices_text(const StepShape& shape);

}  // namespace ferry
