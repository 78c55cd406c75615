#include "models/ops/kernels.h"

namespace ferry::ops {

const CudaKernels& cuda_kernels() {
  static const CudaKernels kernels = {
      {cuda::kNorm, cuda::kRmsNorm, cuda::kGelu, cuda::kGate, cuda::kRotary, cuda::kEmbedding,
       cuda::kDropout, cuda::kRows, cuda::kCrossEntropy},
      cuda::kAttention,
      cuda::kSpanLoss};
  return kernels;
}

}  // namespace ferry::ops
