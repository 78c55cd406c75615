#pragma once
// The wear of a run's drives: what its steps write, and how long drives of known endurance last.
// `ferry plan`, `ferry train` and the app tell it.

#include <cstdint>
#include <optional>
#include <string>

#include "src/plan/nvme_need.h"

namespace ferry {

/** The training without a pause that drives last for when they are new. */
struct DriveLife {
  double n_steps = 0;
  std::optional<double> seconds;  ///< nullopt: a step's time is not known

  /** Worn within months: below a year. False where the time is not known. */
  bool is_short() const;
};

/** `endurance_bytes`: of all drives together (NvmeSettings). Nothing where it is not known, or no
 * step writes to a drive. */
std::optional<DriveLife> drive_life_of(const NvmeNeed& need,
                                       std::optional<int64_t> endurance_bytes,
                                       std::optional<double> step_s);

/** Sentences on what a step reads and writes, and how long the drives last; empty where no states
 * live on one. */
std::string wear_text(const NvmeNeed& need, const std::optional<DriveLife>& life);
/** The warning of drives that are worn within months; else empty. */
std::string wear_warning(const std::optional<DriveLife>& life);

}  // namespace ferry
