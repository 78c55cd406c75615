#pragma once
// A candidate's blocks into the memory that there is: what is resident, what is kept. Private to
// src/plan.

#include "src/plan/search/candidates.h"
#include "src/plan/search/search.h"

namespace ferry {

/** What a plan takes beyond the budgets; 0: it fits. Without a GPU all is in host memory. */
struct Shortfall {
  int64_t gpu_bytes = 0, host_bytes = 0;
  int64_t total() const { return gpu_bytes + host_bytes; }
};

/** Elements of the block whose gradients, those of what it borrows too, are most: slots are as
 * large where it streams. */
int64_t most_grad_elements(const StepShape& shape);

/** No less than slots for blocks of so many elements take of the GPU. */
double slot_bytes_at_most(const StepShape& shape, double n_elements);

/** How many bytes the shape lacks, with a smaller buffer for checkpoints where that alone makes it
 * fit the host. */
Shortfall fit(const PlanRequest& request, StepShape& shape, Search& search);

/** Fills the card: what slots, activations and workspace leave holds weights and states of as many
 * blocks as fit, or of a share of these; the host may only then have room for the others. What is
 * lacking after that. */
Shortfall fill(const PlanRequest& request, Plan& plan, Search& search, double share);

/** What keeps more of the saved tensors by one step: the largest are the first to be made again and
 * the last to be kept. The same where nothing is made again. */
constexpr Activations one_more_kept(Activations activations) {
  return activations == Activations::recompute   ? Activations::selective
         : activations == Activations::selective ? Activations::keep
                                                 : activations;
}

/** What a plan that fits has left keeps more of the saved tensors: those of the last blocks. */
void keep_more(const PlanRequest& request, Plan& plan, const Choice& choice, Search& search);

}  // namespace ferry
