#include "src/plan/search/rank_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "src/plan/search/search.h"

namespace ferry {
namespace {

/** A request with one choice of each kind, and its plan. */
struct Settled {
  PlanRequest request;
  std::optional<Plan> plan;
  double step_s() const {
    return plan && plan->predicted ? plan->predicted->step_s
                                   : std::numeric_limits<double>::infinity();
  }
};

/** The better of the two levels; the first that fits where no times are known. */
Settled settle_level(const ModelTable& model, const PlanRequest& request, Reduction reduction) {
  std::vector<int> levels = {kZeroLevel_least, kZeroLevel_most};
  if (request.zero_level) levels = {*request.zero_level};
  std::optional<Settled> best;
  for (int level : levels) {
    Settled settled = {.request = request};
    settled.request.zero_level = level;
    settled.request.reduction = reduction;
    settled.plan = search_plan(model, settled.request).plan;
    const bool is_better = !best || (settled.plan && !best->plan) ||
                           settled.step_s() < best->step_s() * (1 - kPrediction_share);
    if (is_better) best = std::move(settled);
  }
  return std::move(*best);
}

}  // namespace

PlanRequest settle_rank_choices(const ModelTable& model, const PlanRequest& request) {
  const bool is_settled = request.zero_level && request.reduction;
  if (request.world == 1 || !request.trains || is_settled) return request;
  Settled settled = settle_level(model, request, request.reduction.value_or(Reduction::ordered));
  if (!request.reduction && request.machine) {
    Settled fast = settle_level(model, request, Reduction::fast);
    if (fast.step_s() * (1 + kOrdered_share) < settled.step_s()) settled = std::move(fast);
  }
  // Steps that runs have timed are known by it, as by the user's own wish (run_plan.cpp).
  if (!request.reduction && settled.request.reduction == Reduction::fast)
    settled.request.timed_with += ", reduction = fast";
  return std::move(settled.request);
}

std::string rank_choices_text(const StepShape& shape) {
  std::string text;
  const auto gathers = [](const BlockShape& block) {
    return block.gathers_each_pass && block.place == BlockPlacement(Place::device);
  };
  if (shape.has_peers() && std::ranges::any_of(shape.blocks, gathers))
    text += "; weights that stay on the GPUs are gathered for each pass";
  if (shape.exchanges_sums()) text += "; each rank adds its own micro-batches first";
  return text;
}

}  // namespace ferry
