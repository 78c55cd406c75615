#pragma once
// Fits a candidate's blocks into the memory: decides what is resident and what is kept. Private to
// src/plan.

#include "src/plan/search/candidates.h"
#include "src/plan/search/search.h"

namespace ferry {

/** The bytes that a plan takes beyond the budgets; 0 where it fits. Without a GPU everything is in
 * host memory. */
struct Shortfall {
  int64_t gpu_bytes = 0, host_bytes = 0, nvme_bytes = 0;
  int64_t total() const { return gpu_bytes + host_bytes + nvme_bytes; }
};

/** Blocks that are placed together, in forward order of the first: where a block alone borrows of
 * another, both, since what it borrows costs little more beside it. */
std::vector<std::vector<int>> groups_of(const StepShape& shape);

/** The largest of fits and too_many that `is_possible`, which is so of `fits` and of no more than
 * of fewer. Leaves things as it tried them last. */
template <class Possible>
size_t most_possible(size_t fits, size_t too_many, Possible&& is_possible) {
  while (too_many - fits > 1) {
    const size_t n = (fits + too_many) / 2;
    (is_possible(n) ? fits : too_many) = n;
  }
  return fits;
}

/** Elements of the block whose weights, those of what it borrows too, are most: slots are as large
 * where it streams. */
int64_t most_slot_elements(const StepShape& shape);

/** An upper bound of the bytes that slots take for blocks of so many elements of weights and of
 * gradients. */
double slot_bytes_at_most(const StepShape& shape, double weights, double grads);

/** The bytes that the shape lacks. Space on a drive is that of a store. The buffer for checkpoints
 * becomes smaller where that alone makes the shape fit the host. */
Shortfall fit(const PlanRequest& request, StepShape& shape, Search& search);

/** The use of the room that slots, activations and workspace leave on the card. */
struct Filling {
  double resident_share = 1;  ///< of the blocks whose weights and states fit there
  /** The part that stays there of the other blocks, of as many as fit then. */
  enum class Part : uint8_t { none, weights, states } part = Part::none;
  bool operator==(const Filling&) const = default;
};

/** Fills the card. The host may have room for the other blocks only after that. Returns what is
 * lacking then. */
Shortfall fill(const PlanRequest& request, Plan& plan, Search& search, const Filling& filling);

/** The setting that keeps more of the activations by one step: the largest are the first to be
 * recomputed and the last to be kept. It is the same setting where nothing is recomputed. */
constexpr Activations one_more_kept(Activations activations) {
  return activations == Activations::recompute   ? Activations::selective
         : activations == Activations::selective ? Activations::keep
                                                 : activations;
}

/** Keeps more activations, those of the last blocks, in the memory that a fitting plan leaves. */
void keep_more(const PlanRequest& request, Plan& plan, const Choice& choice, Search& search);

}  // namespace ferry
