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

/** The words that follow "it fits": "without placement = host and with slots = 2, max_length =
 * 256". */
std::string words_of(const Changes& changes);

/** True where a plan is found, however slow it is. */
bool fits(const ModelTable& model, const PlanRequest& request);

/** Each wish about placement left out, one by one. */
Changes without_wishes(const PlanRequest& request);

/** The change that sends activations to the host. There is none with a machine's times: then the
 * planner tries that by itself. */
Changes with_saved_on_host(const PlanRequest& request);

/** The change that gives the run a drive, where it has none. */
Changes with_nvme(const PlanRequest& request);

/** Smaller micro-batches, about half each, where the micro-batch was fixed. */
Changes with_smaller_micro_batches(const PlanRequest& request);

/** The smallest micro-batch with which a step has no more of them than it may, where the
 * micro-batch was fixed. */
Changes with_smallest_micro_batch(const ModelTable& model, const PlanRequest& request);

/** max_length halved, and again, down to 32 tokens. */
Changes with_shorter_texts(const PlanRequest& request);

/** Fewer samples a step, where a step has more micro-batches than can be listed. */
Changes with_smaller_steps(const PlanRequest& request);

/** Everything that a run may keep in fewer bytes, all of it at once. The planner does not choose
 * this, because it changes the result. */
Changes with_reduced_states(const ModelTable& model, const PlanRequest& request);

/** The first changes, taken together in their order, that make it fit, and no more of them than are
 * needed. */
std::optional<Changes> several_that_fit(const ModelTable& model,
                                        const PlanRequest& request,
                                        bool is_too_large);

}  // namespace ferry
