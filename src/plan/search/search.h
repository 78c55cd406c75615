#pragma once
// The planner's search, for make_plan and for the advice of a refusal, which tries its changes by
// searching again. Private to src/plan.

#include <optional>
#include <vector>

#include "src/plan/plan.h"

namespace ferry {

struct Search {
  std::optional<Plan> plan;                ///< the plan that make_plan() takes
  std::optional<Plan> nearest;             ///< none fits: the one that lacks the fewest bytes
  int64_t lacking_bytes = INT64_MAX;       ///< the bytes that `nearest` takes beyond the budgets
  int64_t host_lacking_bytes = INT64_MAX;  ///< as Plan's
  /** A candidate that was passed over: its micro-batches are more than one step can list. */
  std::optional<Plan> too_many;
  /** A micro-batch of more than a GPU's kernels take at once. */
  bool is_too_large = false;
};

/** The plan that is taken of several that fit. The question whether there is one needs no times. */
enum class Takes { fastest, first };

/** With `below_s` only plans of faster steps are wanted: where there is none, the search may find a
 * slower plan or nothing. */
Search search_plan(const ModelTable& model,
                   const PlanRequest& request,
                   Takes takes = Takes::fastest,
                   std::optional<double> below_s = {});

/** Plans that are promised within this share of the fastest may each be the fastest. */
inline constexpr double kRival_share = 0.1;

/** Plans whose steps take no more than `share` longer than that of the plan that search_plan()
 * takes, by their predictions alone: that plan first, then the others, the fastest first. Each is
 * the best of another micro-batch or another choice, and none only adds work to another with the
 * same micro-batch. None is faster than the first by more than kPrediction_share. Empty where no
 * times are known. */
std::vector<Plan> search_rivals(const ModelTable& model, const PlanRequest& request, double share);

/** A prediction tells no smaller difference: then the plan that moves less is taken, which comes
 * first. */
inline constexpr double kPrediction_share = 0.02;

/** The size of a checkpoint's buffer where there is room. Steps on a CPU take longer than the disk
 * does, and memory is all there is. */
constexpr int64_t most_save_buffer_bytes(const PlanRequest& request) {
  return request.has_gpu ? kSaveBuffer_bytes : kSaveBuffer_bytes_least;
}

/** Micro-batches that a step of this model may have. */
int64_t n_micro_most(const ModelTable& model, const PlanRequest& request);

/** Says what `search` found to be missing, and what to change: Error(does_not_fit), or Error(usage)
 * when nothing was small or few enough to be laid out. */
[[noreturn]] void refuse(const ModelTable& model, const PlanRequest& request, const Search& search);

}  // namespace ferry
