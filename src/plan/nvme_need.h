#pragma once
// The traffic and the space of states, weights and gradients that a plan puts on NVMe. The search
// keeps to the space, `ferry plan` and the app print both.

#include <cstdint>
#include <string>

#include "offload/step/step_shape.h"

namespace ferry {

/** An amount that no drive has: half an exbibyte. */
inline constexpr int64_t kStore_bytes_max = int64_t{1} << 59;

/** Said where nvme_path is given and nothing lives there. */
inline constexpr const char* kDriveUnused =
    "nvme_path is not used: the memory that there is has room for all";

struct NvmeNeed {
  int n_blocks = 0, n_pieces = 0;  ///< of which something lives there, and what it is cut into
  int64_t read_bytes = 0, written_bytes = 0;  ///< of a step; what is written wears the drive
  /** Space, with all copies; more than kStore_bytes_max where no store takes so many extents. */
  int64_t store_bytes = 0;
  int64_t window_bytes = 0;                      ///< of memory, for pieces on their way
  bool has_states = false, has_weights = false;  ///< not only copies of weights in memory
  int64_t grad_bytes = 0;  ///< gradients that wait there, of which the store has one copy
};

/** The least copies of the states that a store has: what was committed last, and what is being
 * written. Each checkpoint that is kept is one more. */
inline constexpr int kNvmeCopies_least = 2;

/** "states, weights and gradients": what is there. Gradients are left out without `with_grads`. */
std::string contents_text(const NvmeNeed& need, bool with_grads = true);

/** All zero where nothing lives on a drive. `n_copies`: PlanRequest::n_nvme_copies. */
NvmeNeed nvme_need_of(const StepShape& shape, int n_copies);

}  // namespace ferry
