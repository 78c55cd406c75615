#include "models/ops/kernels.h"

namespace ferry::ops {

const Kernels& cpu_kernels() {
  static const Kernels kernels = {kCpuNorm, kCpuRmsNorm,      kCpuHeadNorm,  kCpuActivation,
                                  kCpuGate, kCpuRotary,       kCpuEmbedding, kCpuDropout,
                                  kCpuRows, kCpuCrossEntropy, kCpuStored};
  return kernels;
}

}  // namespace ferry::ops
