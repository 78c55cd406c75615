#pragma once
// Dropout of one operation, as the layer operations take it on CPU and GPU.

#include <cstdint>

namespace ferry::ops {

/** Element i is kept when its Philox draw (simd/philox.h) under `key` is >= round(p * 2^32), and is
 * then scaled by 1 / (1 - p): the same mask on a CPU and a GPU. p == 0: no dropout. 0 <= p < 1. */
struct Dropout {
  float p = 0;
  uint64_t key = 0;
  /** The address of the key in GPU memory, where the work is recorded into a CUDA graph: each run
   * of the graph reads the key there. */
  const uint64_t* key_at = nullptr;
  /** The element of the mask that goes with the first one of the tensor, whose rows are a part of a
   * micro-batch's. */
  int64_t first_element = 0;
};

}  // namespace ferry::ops
