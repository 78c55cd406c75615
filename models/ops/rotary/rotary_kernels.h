#pragma once
// The kernel of rotary positions, both directions.

#include "models/ops/kernel.h"

namespace ferry::ops {

/** Half the widest head that a GPU rotates. */
inline constexpr int64_t kRotaryPairs_max = 256;

/** Rotates in place the first n_rotated of each token's n_heads rows of head_width elements by
 * position * frequencies[i], pairs (i, i + head_width / 2); or back. */
struct Rotate {
  DType type = DType::f32;
  int64_t T = 0, n_heads = 0, n_rotated = 0, head_width = 0;
  bool back = false;
  const int32_t* position_ids = nullptr;  // (T)
  const float* frequencies = nullptr;  // (head_width / 2), in host memory, read before the return
  void* x = nullptr;                   // (T, n_heads, head_width)
};

struct RotaryKernels {
  Kernel<Rotate> rotate;
};
namespace cpu {
extern const RotaryKernels kRotary;
}
namespace cuda {
extern const RotaryKernels kRotary;
}

}  // namespace ferry::ops
