#include "src/engine/torch_setup.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <cstdlib>

namespace ferry {

int set_up_torch(const TorchOptions& options) {
  // cuBLAS reads this when its handle is made; without it equal inputs need not give equal bits.
  if (options.deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
  auto& context = at::globalContext();
  // warn_only must be off: with it, the backward of attention silently is not deterministic.
  context.setDeterministicAlgorithms(options.deterministic, /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);
  context.setBenchmarkCuDNN(false);
  context.setAllowTF32CuBLAS(options.allow_tf32);
  context.setAllowFP16ReductionCuBLAS(false);
  context.setAllowBF16ReductionCuBLAS(false);
  if (options.intra_op_threads > 0) at::set_num_threads(options.intra_op_threads);
  return at::get_num_threads();
}

std::string torch_version() {
  return TORCH_VERSION;
}

std::string torch_cpu_capability() {
  return at::get_cpu_capability();
}

}  // namespace ferry
