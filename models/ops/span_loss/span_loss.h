#pragma once
// Question answering's loss. The kernels are CUDA's, over sequences laid end to end, of which the
// first n_seqs have labels. Labels count from their sequence's first token; below 0 is 0, past the
// end is no item.

#include "models/ops/operation.h"

namespace ferry::ops {

/** lse = log of the sum of exponentials over a sequence's own tokens, losses = weight * (lse - the
 * label's logit). */
struct SpanLossForward {
  int64_t T = 0, n_seqs = 0;
  const float* logits = nullptr;        // (2, T): starts, ends
  const int32_t* cu_seqlens = nullptr;  // (at least n_seqs + 1)
  const int32_t* labels = nullptr;      // (n_seqs, 2)
  float start_weight = 0, end_weight = 0;
  float* lse = nullptr;     // (n_seqs, 2)
  float* losses = nullptr;  // (n_seqs, 2), 0 for no item
};

/** d_logits = factor * (softmax - [token is label]), 0 where there is no item. */
struct SpanLossBackward {
  int64_t T = 0, n_seqs = 0;
  const float* logits = nullptr;        // (2, T)
  const int32_t* cu_seqlens = nullptr;  // (at least n_seqs + 1)
  const int32_t* labels = nullptr;      // (n_seqs, 2)
  const float* lse = nullptr;           // (n_seqs, 2)
  float start_factor = 0, end_factor = 0;
  float* d_logits = nullptr;  // (2, T)
};

struct SpanLossKernels {
  Kernel<SpanLossForward> span_loss_forward;
  Kernel<SpanLossBackward> span_loss_backward;
};
extern const SpanLossKernels kCudaSpanLoss;

/** Question answering (transformers' BertForQuestionAnswering, but over each sequence's own
 * tokens): cross entropy of the start and of the end, whose classes are the tokens of their
 * sequence. batch.labels (n_seqs_real, 2) int32. loss, if defined = 0.5 * (loss_weight * sum over
 * starts + end_loss_weight * sum over ends); a start or end past its sequence is no item. lse is
 * kept for the backward. */
void span_loss_forward(const at::Tensor& logits,  // (2, T) fp32
                       const BatchTensors& batch,
                       at::Tensor& lse,  // (n_seqs_real, 2) fp32
                       at::Tensor& loss,
                       Scratch& scratch);
/** d_logits (2, T), zero in the dummy tail; with the batch's grad_scale. */
void span_loss_backward(const at::Tensor& logits,
                        const BatchTensors& batch,
                        const at::Tensor& lse,
                        at::Tensor& d_logits);

}  // namespace ferry::ops
