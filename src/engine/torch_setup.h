#pragma once
// LibTorch as Ferry needs it: deterministic algorithms, TF32 off, a fixed number of intra-op
// threads, and (on a GPU) its allocations inside one region of the plan. Called once, before the
// first operation. The header is without torch.

#include <string>

namespace ferry {

struct TorchOptions {
  bool deterministic = true;
  int intra_op_threads = 0;  ///< 0: one a core
  bool allow_tf32 = false;
};

/** Returns the number of intra-op threads in force. */
int set_up_torch(const TorchOptions& options);

/** The version of LibTorch, and the CPU's instructions that it chooses its kernels by. */
std::string torch_version();
std::string torch_cpu_capability();

}  // namespace ferry
