#pragma once
// Attention of some rows of queries over some rows of keys, whose results add up over parts of the
// keys by their sums of exponentials (private to models/ops). part_scratch.h has its scratch.

#include <ATen/core/Tensor.h>

#include "models/ops/dropout_mask.h"
#include "models/ops/ring_attention/ring_attention_op.h"
#include "models/ops/ring_attention/ring_parts.h"
#include "models/ops/run.h"

namespace ferry::ops {

/** A part's operands. H heads of queries, W their columns, K the columns of all heads of keys. */
struct PartOperands {
  RingPart part;
  at::Tensor q;     // (queries, W)
  at::Tensor k, v;  // (keys, K)
};

struct PartResults {
  at::Tensor out;  // (queries, W)
  at::Tensor lse;  // (H, queries) fp32: the logarithm of the sum of exponentials of scores
};

struct PartGradients {
  at::Tensor d_out;  // (queries, W), of the context of all parts
  at::Tensor out;    // (queries, W), the context of all parts
  at::Tensor lse;    // (H, queries) fp32, of all parts
  at::Tensor seeds;  // (2) int64, as the forward left them
};

struct PartGradientsOut {
  at::Tensor dq;      // (queries, W)
  at::Tensor dk, dv;  // (keys, K)
};

/** By LibTorch's products of matrices in fp32, a block of queries at a time, on any device. All
 * tensors are fp32 and the results are scratch of the caller's scope. */
PartResults math_part_forward(const OpCall& c, const Dropout& dropout, const PartOperands& its);
PartGradientsOut math_part_backward(const OpCall& c,
                                    const Dropout& dropout,
                                    const PartOperands& its,
                                    const PartGradients& given);

/** By LibTorch's flash attention, in 16 bits; the results are LibTorch's memory. `seeds` (2) int64
 * are written where there is dropout. */
PartResults flash_part_forward(const OpCall& c,
                               const Dropout& dropout,
                               const PartOperands& its,
                               at::Tensor seeds);
PartGradientsOut flash_part_backward(const OpCall& c,
                                     const Dropout& dropout,
                                     const PartOperands& its,
                                     const PartGradients& given);

}  // namespace ferry::ops
