#pragma once
// The optimizer's part of a step: it decides once it knows the gradients' sums.

#include <functional>
#include <string>
#include <vector>

#include "simd/kernels.h"

namespace ferry {

/** Facts about a step's gradients, once all have been summed. */
struct StepSums {
  double square_sum = 0;          ///< the sum over all trained blocks
  bool has_finite_block = false;  ///< the gradients of one of them at least are finite
};

/** The optimizer's decision on a step's gradients. */
struct Decision {
  bool skip = false;                    ///< overflow or non-finite norm: no state changes
  std::vector<simd::UpdateStep> steps;  ///< by TensorExtent::group
};

struct StepOutcome {
  double loss = 0;             ///< sum of the micro-batches' contributions, in order
  std::vector<double> losses;  ///< of an evaluation, by micro-batch of this rank
  double square_sum = 0;  ///< the square sum of the gradients as summed (scaled by the loss scale)
  Decision decision;
};

/** The way in which the optimizer comes to its decision. */
struct UpdateRule {
  std::function<Decision(const StepSums&)> decide;  ///< called on the decision queue
  /** The decision's steps, where they depend on no gradient (neither clipping nor loss scaling):
   * blocks are updated as their gradients arrive, and one whose gradients are not finite stays as
   * it is, whatever lives where. Empty: all blocks wait for the decision, and it says skip or go.
   */
  std::vector<simd::UpdateStep> steps_ahead;
  /** The metadata of the generation that the step makes, where states live on a drive: a trainer
   * resumes with it. Called after decide, on the same queue; empty: none. */
  std::function<std::string(const StepOutcome&)> describe;
  /** False: the step makes no generation (a rehearsal), and the last one stays. */
  bool commits = true;
};

}  // namespace ferry
