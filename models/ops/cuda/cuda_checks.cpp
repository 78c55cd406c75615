#include "models/ops/cuda/cuda_checks.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry::ops::cuda {

void expect(bool holds, const char* expectation, double value) {
  FERRY_CHECK(holds, "CUDA kernel: expected {}, got {}", expectation, value);
}

void launch_failed(const char* what, const char* message) {
  throw Error(Fault::machine, "cuda.launch", fmt::format("{}: {}", what, message),
              "`ferry doctor` shows the GPU and its driver");
}

}  // namespace ferry::ops::cuda
