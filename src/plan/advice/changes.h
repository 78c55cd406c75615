#pragma once
// Changes of a request that may make a run fit, by the options that make them. Private to src/plan.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/plan/plan.h"

namespace ferry {

/** A change of a request, by the option that is set or left out. */
struct Change {
  std::string option;  ///< "max_length = 256"
  std::function<void(PlanRequest&)> make;
  bool leaves_out = false;
};
/** Changes at once. */
using Changes = std::vector<Change>;

/** The request with all of them made. */
PlanRequest changed(PlanRequest request, const Changes& changes);

/** What "it fits" goes on with: "without placement = host and with slots = 2, max_length = 256". */
std::string words_of(const Changes& changes);

/** Whether a plan is found, of whatever speed. */
bool fits(const ModelTable& model, const PlanRequest& request);

/** Each wish about placement left out, one by one. */
Changes without_wishes(const PlanRequest& request);

/** None with a machine's times: then the planner tries that by itself. */
Changes with_saved_on_host(const PlanRequest& request);

/** Where the micro-batch was fixed: smaller ones, about half each. */
Changes with_smaller_micro_batches(const PlanRequest& request);

/** Where the micro-batch was fixed: the smallest with which a step has no more than it may. */
Changes with_smallest_micro_batch(const ModelTable& model, const PlanRequest& request);

/** max_length halved, and again, down to 32 tokens. */
Changes with_shorter_texts(const PlanRequest& request);

/** Where a step has more micro-batches than can be listed: fewer samples. */
Changes with_smaller_steps(const PlanRequest& request);

/** What a run may keep in fewer bytes, all of it at once: not the planner's to choose, for it
 * changes what comes out. */
Changes with_reduced_states(const ModelTable& model, const PlanRequest& request);

/** Of several changes at once the first that make it fit, and no more than it takes. */
std::optional<Changes> several_that_fit(const ModelTable& model,
                                        const PlanRequest& request,
                                        bool is_too_large);

}  // namespace ferry
