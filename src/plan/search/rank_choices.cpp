#include "src/plan/search/rank_choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "src/plan/search/search.h"

namespace ferry {
namespace {

double step_s_of(const SettledRanks& settled) {
  return settled.plan && settled.plan->predicted ? settled.plan->predicted->step_s
                                                 : std::numeric_limits<double>::infinity();
}

/** The time below which another plan is better; nothing where the time is not known. */
std::optional<double> seconds_below(const SettledRanks& settled, double share) {
  if (!settled.plan || !settled.plan->predicted) return std::nullopt;
  return settled.plan->predicted->step_s * share;
}

/** On two H200 steps with the blocks split took 10 to 16 % longer than planned, with the samples
 * split 1 to 12 %: blocks are split where that is so much faster. */
constexpr double kSplit_share = 0.1;
/** More ranks would take long to plan, and few blocks leave most ranks waiting. */
constexpr int kDealtRanks_max = 8, kDealtBlocks_min = 2;

bool may_deal_blocks(const ModelTable& model, const PlanRequest& request) {
  const bool is_of_one_host = request.n_per_host == 0 || request.n_per_host >= request.world;
  const auto n_blocks = static_cast<int>(model.blocks.size());
  return is_of_one_host && request.world <= kDealtRanks_max &&
         n_blocks >= kDealtBlocks_min * request.world && !request.zero_level &&
         request.reduction != Reduction::fast;  // whose bits others have not
}

/** Each rank is a stage, and the run has the bits of one rank. `below_s`: search_plan()'s, as in
 * the functions that follow. */
SettledRanks settle_blocks(const ModelTable& model,
                           const PlanRequest& request,
                           std::optional<double> below_s = {}) {
  SettledRanks settled = {.request = request};
  settled.request.n_stages = request.world;
  settled.request.reduction = Reduction::ordered;
  settled.request.zero_level = kZeroLevel_least;
  settled.plan = search_plan(model, settled.request, Takes::fastest, below_s).plan;
  return settled;
}

/** The better of the two levels; the first that fits where no times are known. */
SettledRanks settle_level(const ModelTable& model,
                          const PlanRequest& request,
                          Reduction reduction,
                          std::optional<double> below_s = {}) {
  std::vector<int> levels = {kZeroLevel_least, kZeroLevel_most};
  if (request.zero_level) levels = {*request.zero_level};
  std::optional<SettledRanks> best;
  for (int level : levels) {
    SettledRanks settled = {.request = request};
    settled.request.zero_level = level;
    settled.request.n_stages = request.n_stages.value_or(1);
    settled.request.reduction = reduction;
    if (best && best->plan) below_s = seconds_below(*best, 1 - kPrediction_share);
    settled.plan = search_plan(model, settled.request, Takes::fastest, below_s).plan;
    const bool is_better = !best || (settled.plan && !best->plan) ||
                           step_s_of(settled) < step_s_of(*best) * (1 - kPrediction_share);
    if (is_better) best = std::move(settled);
  }
  return std::move(*best);
}

}  // namespace

SettledRanks settle_rank_choices(const ModelTable& model, const PlanRequest& request) {
  const bool is_settled = request.zero_level && request.reduction && request.n_stages;
  if (request.world == 1 || !request.trains || is_settled) return {request};
  if (request.n_stages == request.world) return settle_blocks(model, request);
  SettledRanks settled =
      settle_level(model, request, request.reduction.value_or(Reduction::ordered));
  if (!request.reduction && request.machine && settled.request.n_stages == 1) {
    SettledRanks fast = settle_level(model, request, Reduction::fast,
                                     seconds_below(settled, 1 / (1 + kOrdered_share)));
    if (step_s_of(fast) * (1 + kOrdered_share) < step_s_of(settled)) settled = std::move(fast);
  }
  // Steps that runs have timed are known by it, as by the user's own wish (run_plan.cpp).
  if (!request.reduction && settled.request.reduction == Reduction::fast)
    settled.request.timed_with += ", reduction = fast";
  if (!request.n_stages && may_deal_blocks(model, request)) {
    SettledRanks dealt =
        settle_blocks(model, request, seconds_below(settled, 1 / (1 + kSplit_share)));
    const bool fits_alone = dealt.plan && !settled.plan;
    if (fits_alone || step_s_of(dealt) * (1 + kSplit_share) < step_s_of(settled)) {
      dealt.request.timed_with = request.timed_with + ", gpu_split = blocks";
      return dealt;
    }
  }
  return settled;
}

PlanRequest with_rank_choices_of(const Plan& plan, PlanRequest request) {
  const StepShape& shape = plan.shape;
  if (shape.ranks.world == 1) return request;
  const bool gathers = std::ranges::any_of(shape.blocks, &BlockShape::gathers_each_pass);
  request.n_stages = shape.ranks.n_stages;
  request.reduction = shape.reduction;
  request.zero_level = gathers ? kZeroLevel_most : kZeroLevel_least;
  return request;
}

std::string rank_choices_text(const StepShape& shape) {
  std::string text;
  const auto gathers = [](const BlockShape& block) {
    return block.gathers_each_pass && block.place == BlockPlacement(Place::device);
  };
  if (shape.cuts_blocks() && std::ranges::any_of(shape.blocks, gathers))
    text += "; weights that stay on the GPUs are gathered for each pass";
  if (shape.deals_blocks())
    text += fmt::format(
        "; {} have the blocks {}",
        shape.cuts_blocks() ? fmt::format("the {} stages", shape.ranks.n_stages) : "the GPUs",
        shape.order == AccumulationOrder::vertical ? "in turn" : "as a pipeline");
  if (!shape.ranks.shares.empty())
    text += fmt::format("; {} in shares of {}", shape.deals_blocks() ? "blocks" : "micro-batches",
                        fmt::join(shape.ranks.shares, ", "));
  if (shape.exchanges_sums()) text += "; each rank adds its own micro-batches first";
  return text;
}

}  // namespace ferry
