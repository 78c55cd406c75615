// Stands in for cuda_kernels.cpp in a build without CUDA.

#include <fmt/format.h>

#include "models/ops/kernels.h"
#include "src/base/error.h"

namespace ferry::ops {

const CudaKernels& cuda_kernels() {
  FERRY_CHECK(false, "built without CUDA");
  __builtin_unreachable();
}

}  // namespace ferry::ops
