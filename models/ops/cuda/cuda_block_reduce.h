#pragma once
// Reductions over a block of threads on CUDA (included from .cu files only), in an order that the
// block's size alone fixes.

#include "models/ops/cuda/cuda_common.h"

namespace ferry::ops::cuda {

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/** combine(all threads' values), in every thread; all kThreads of the block call it. */
template <int kThreads, typename Combine>
__device__ float combine_block(float value, Combine combine) {
  __shared__ float part[kThreads];
  part[threadIdx.x] = value;
  __syncthreads();
  for (int distance = kThreads / 2; distance > 0; distance /= 2) {
    if (threadIdx.x < distance)
      part[threadIdx.x] = combine(part[threadIdx.x], part[threadIdx.x + distance]);
    __syncthreads();
  }
  const float total = part[0];
  __syncthreads();
  return total;
}

}  // namespace ferry::ops::cuda
