#pragma once
// The kernels of all layer operations, one table for the CPU and one for CUDA. The operations'
// functions on tensors call them with raw pointers; GEMM, and attention on a GPU, are ATen's.
//
// On the CPU they run on LibTorch's intra-op threads, whose number changes no bit. On CUDA they
// return when the work is queued and can be captured in a CUDA graph; the scratch is free again in
// stream order; no float atomics. Rows of a multiple of 16 bytes at 16-byte aligned addresses,
// which a plan's tensors have, run vectorised there; others are slower and may add up a row in
// another order. A refused launch throws Error(Fault::machine).

#include "models/ops/activation/activation.h"
#include "models/ops/attention/capped_softmax.h"
#include "models/ops/attention/join_gradients.h"
#include "models/ops/cross_entropy/cross_entropy.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/embedding/embedding.h"
#include "models/ops/gate/gate.h"
#include "models/ops/head_norm/head_norm.h"
#include "models/ops/linear/stored.h"
#include "models/ops/norm/norm.h"
#include "models/ops/rms_norm/rms_norm.h"
#include "models/ops/rotary/rotary.h"
#include "models/ops/rows/rows.h"
#include "models/ops/span_loss/span_loss.h"

namespace ferry::ops {

struct Kernels : NormKernels,
                 RmsNormKernels,
                 HeadNormKernels,
                 ActivationKernels,
                 GateKernels,
                 RotaryKernels,
                 EmbeddingKernels,
                 DropoutKernels,
                 RowsKernels,
                 CrossEntropyKernels,
                 StoredKernels {};

/** A GPU has some that have no like on the CPU. */
struct CudaKernels : Kernels, AttentionKernels, CappedSoftmaxKernels, SpanLossKernels {};

const Kernels& cpu_kernels();
/** FERRY_CHECK fails in a build without CUDA: operations ask a tensor's device first. */
const CudaKernels& cuda_kernels();

}  // namespace ferry::ops
