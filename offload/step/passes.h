#pragma once
// In which order the blocks of a step have their passes on the compute queue: what the pager makes
// its list from, and what the slots of layer inputs are planned for.

#include <vector>

#include "offload/step/step_shape.h"

namespace ferry {

/** A block's pass on the compute queue, before slots are known. */
struct BlockPass {
  bool backward = false;
  int block = 0;
  int micro = 0;
};

/** Of a step with `n_micro` micro-batches; without `trains` the forwards alone. */
std::vector<BlockPass> passes_of(const StepShape& shape, int n_micro, bool trains);

}  // namespace ferry
