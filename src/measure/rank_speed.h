#pragma once
// How fast a GPU computes beside the other GPUs of a run. It says nothing of links and drives.

#include <cstdint>

#include "src/base/dtype.h"

namespace ferry::measure {

/** The work of a run's passes, as far as it decides which GPU is how much faster. */
struct PassSize {
  DType type{};
  int64_t width = 0;   ///< of the hidden states
  int64_t length = 0;  ///< of a text, in tokens
  int64_t tokens = 0;  ///< of a micro-batch
};

/** Seconds of a step of some layers of about this size, whose weights are drawn at random: the
 * median of those of about a second, after warming up. `gpu`: its index; below zero the CPU. At
 * most 0.9 GiB of a GPU are planned for it, and free again. 0 where that fails. */
double seconds_of_passes(const PassSize& size, int gpu);

}  // namespace ferry::measure
