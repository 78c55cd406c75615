#include "models/ops/kernels.h"

namespace ferry::ops {

const Kernels& cpu_kernels() {
  static const Kernels kernels = {cpu::kNorm,    cpu::kRmsNorm, cpu::kGelu,
                                  cpu::kGate,    cpu::kRotary,  cpu::kEmbedding,
                                  cpu::kDropout, cpu::kRows,    cpu::kCrossEntropy};
  return kernels;
}

}  // namespace ferry::ops
