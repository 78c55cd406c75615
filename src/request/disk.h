#pragma once
// The disk a run needs, from the tensor table: `ferry plan` shows it, `ferry train` refuses before
// the first step where it is not there.

#include <cstdint>
#include <filesystem>
#include <optional>

#include "models/core/tensor_table.h"
#include "simd/update/optim.h"
#include "src/config/config.h"

namespace ferry {

struct StepShape;

struct DiskNeed {
  int64_t checkpoint_bytes = 0;  ///< one: master weights in fp32, and the states of what is trained
  int64_t n_checkpoints = 0;  ///< kept, and one more: the oldest goes when the newest is complete
  int64_t n_checkpoints_there = 0;  ///< the ones that are written already
  int64_t final_bytes = 0;          ///< the trained model in final_dtype
  int64_t small_bytes = 0;          ///< tokenizers beside the weights, configurations, log, metrics

  /** The bytes that are still to be written; INT64_MAX where no disk would be enough. */
  int64_t bytes() const;
};

/** The bytes of one checkpoint without its small files. */
int64_t checkpoint_bytes(const ModelTable& model, simd::Optim optim);
/** The part of these that lies on a drive where the shape has states there: a checkpoint pins it
 * and has no bytes of it. */
int64_t pinned_bytes(const ModelTable& model, const StepShape& shape);
/** Checkpoints that are there at once: those that are kept, and one that is being made. 0: the run
 * makes none of itself. */
int64_t checkpoints_at_once(const config::Config& config);

/** n_there: complete checkpoints that the run has, where it is resumed. `shape`: of the plan, where
 * it is made. */
DiskNeed disk_needed(const ModelTable& model,
                     const config::Config& config,
                     int64_t n_there = 0,
                     const StepShape* shape = nullptr);

/** The bytes that a user may write to the file system of the directory, or of the nearest directory
 * above it that exists; nullopt where the system does not tell. */
std::optional<int64_t> free_disk_bytes(const std::filesystem::path& directory);

/** Throws Error(does_not_fit) with what to change. */
void check_disk(const DiskNeed& need, const std::filesystem::path& directory);

}  // namespace ferry
