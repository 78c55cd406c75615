#pragma once
// A norm's weight as the CUDA kernels read it (included from .cu files only).

#include "models/ops/cuda/cuda_common.h"

namespace ferry::ops::cuda {

/** A pack of the weight with its offset. */
template <typename T, int N>
__device__ inline void load_weight(const T* weight, int column, float offset, float (&scale)[N]) {
  load(weight, column, scale);
  if (offset == 0) return;
#pragma unroll
  for (int i = 0; i < N; i++)
    scale[i] += offset;
}

}  // namespace ferry::ops::cuda
