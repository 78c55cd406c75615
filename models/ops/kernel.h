#pragma once
// The form of a kernel of the layer operations: one struct of operands for each operation and
// direction, and the launch. The same struct serves the CPU and CUDA. Each operation's folder has
// its structs and table in <operation>_kernels.h; kernels.h joins the tables. No torch here, and no
// CUDA header.
//
// Common to all: matrices are row-major and dense, of the struct's `type` (f32, f16, bf16) unless
// said; arithmetic is fp32, and a value is rounded once (to nearest even) where it is stored. How
// rows fall into sums depends on sizes alone, so the same input gives the same bits on every run.

#include <cstdint>

#include "src/base/dtype.h"

namespace ferry::ops {

/** The stream on which a kernel runs, and the memory it works in besides its operands. */
struct Launch {
  void* stream = nullptr;  ///< a cudaStream_t; a CPU's kernels take none
  void* scratch =
      nullptr;  ///< on the operands' device; as many bytes as the operation's struct says
};

template <typename Arguments>
using Kernel = void (*)(const Arguments&, const Launch&);

}  // namespace ferry::ops
