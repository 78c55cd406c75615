#pragma once
// The parts that each operation's header needs: the form of a kernel, names of tensors. An
// operation has one struct of operands for each direction, which serves the CPU and CUDA alike, and
// two tables of the kernels that take them: kCpu... and kCuda.... No torch here, and no CUDA
// header.
//
// On the CPU kernels run on LibTorch's intra-op threads, whose number changes no bit. On CUDA they
// return when the work is queued and can be captured in a CUDA graph; the scratch is free again in
// stream order; no float atomics. Rows of a multiple of 16 bytes at 16-byte aligned addresses,
// which a plan's tensors have, run vectorised there; others are slower and may add up a row in
// another order. A refused launch throws Error(Fault::machine).
//
// Common to all kernels: matrices are row-major and dense, of the extent's type (f32, f16, bf16)
// unless said; arithmetic is fp32, and a value is rounded once (to nearest even) where it is
// stored. How rows fall into sums depends on sizes alone, so the same input gives the same bits on
// every run. Common to all functions on tensors: these are dense, of one type unless said; they
// write into tensors they are given, and take temporaries from the scratch, as many bytes as
// scratch_sizes.h says.

#include <cstdint>

#include "src/base/dtype.h"

namespace at {
class Tensor;
}
namespace ferry {
class Scratch;
struct BatchTensors;
struct RandomKey;
}  // namespace ferry

namespace ferry::ops {

/** The stream on which a kernel runs, and the memory it works in besides its operands. */
struct Launch {
  void* stream = nullptr;   ///< a cudaStream_t; a CPU's kernels take none
  void* scratch = nullptr;  ///< on the operands' device; as many bytes as their struct says
};

template <typename Operands>
using Kernel = void (*)(const Operands&, const Launch&);

/** Type, rows and width of the matrices that a kernel works on. */
struct Extent {
  DType type = DType::f32;
  int64_t T = 0, W = 0;
};

}  // namespace ferry::ops
