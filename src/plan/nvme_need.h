#pragma once
// The traffic and the space of states and weights that a plan puts on NVMe. The search keeps to the
// space, `ferry plan` and the app print both.

#include <cstdint>

#include "offload/step/step_shape.h"

namespace ferry {

/** An amount that no drive has: half an exbibyte. */
inline constexpr int64_t kStore_bytes_max = int64_t{1} << 59;

struct NvmeNeed {
  int n_blocks = 0, n_pieces = 0;  ///< of which something lives there, and what it is cut into
  int64_t read_bytes = 0, written_bytes = 0;  ///< of a step; what is written wears the drive
  /** Space, with all copies; more than kStore_bytes_max where no store takes so many extents. */
  int64_t store_bytes = 0;
  int64_t window_bytes = 0;  ///< of memory, for pieces on their way
};

/** The least copies of the states that a store has: what was committed last, and what is being
 * written. Each checkpoint that is kept is one more. */
inline constexpr int kNvmeCopies_least = 2;

/** All zero where nothing lives on a drive. `n_copies`: PlanRequest::n_nvme_copies. */
NvmeNeed nvme_need_of(const StepShape& shape, int n_copies);

}  // namespace ferry
