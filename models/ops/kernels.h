#pragma once
// The kernels of all layer operations, one table for the CPU and one for CUDA. The operations'
// functions on tensors call them with raw pointers; GEMM, and attention on a GPU, are ATen's.
//
// On the CPU they run on LibTorch's intra-op threads, whose number changes no bit. On CUDA they
// return when the work is queued and can be captured in a CUDA graph; the scratch is free again in
// stream order; no float atomics. Rows of a multiple of 16 bytes at 16-byte aligned addresses,
// which a plan's tensors have, run vectorised there; others are slower and may add up a row in
// another order. A refused launch throws Error(Fault::machine).

#include "models/ops/attention/attention_kernels.h"
#include "models/ops/cross_entropy/cross_entropy_kernels.h"
#include "models/ops/dropout/dropout_kernels.h"
#include "models/ops/embedding/embedding_kernels.h"
#include "models/ops/gate/gate_kernels.h"
#include "models/ops/gelu/gelu_kernels.h"
#include "models/ops/norm/norm_kernels.h"
#include "models/ops/rms_norm/rms_norm_kernels.h"
#include "models/ops/rotary/rotary_kernels.h"
#include "models/ops/rows/rows_kernels.h"
#include "models/ops/span_loss/span_loss_kernels.h"

namespace ferry::ops {

struct Kernels : NormKernels,
                 RmsNormKernels,
                 GeluKernels,
                 GateKernels,
                 RotaryKernels,
                 EmbeddingKernels,
                 DropoutKernels,
                 RowsKernels,
                 CrossEntropyKernels {};

/** Those of a GPU: with ones that have no like on the CPU. */
struct CudaKernels : Kernels, AttentionKernels, SpanLossKernels {};

const Kernels& cpu_kernels();
/** FERRY_CHECK fails in a build without CUDA: operations ask a tensor's device first. */
const CudaKernels& cuda_kernels();

}  // namespace ferry::ops
