#include "models/ops/kernels.h"

namespace ferry::ops {

const CudaKernels& cuda_kernels() {
  static const CudaKernels kernels = {
      {kCudaNorm, kCudaRmsNorm, kCudaHeadNorm, kCudaActivation, kCudaGate, kCudaRotary,
       kCudaEmbedding, kCudaDropout, kCudaRows, kCudaCrossEntropy, kCudaStored},
      kCudaAttention,
      kCudaCappedSoftmax,
      kCudaSpanLoss};
  return kernels;
}

}  // namespace ferry::ops
