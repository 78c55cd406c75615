#include "models/ops/cpu/row_kernels.h"

#include "simd/level.h"

namespace ferry::ops {

const RowKernels& row_kernels() {
  return simd::level() == simd::Level::scalar ? row_kernels_baseline() : row_kernels_avx2();
}

}  // namespace ferry::ops
