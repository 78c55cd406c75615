#pragma once
// Question answering's loss on tensors, forward and backward.

#include <ATen/core/Tensor.h>

#include "models/block.h"

namespace ferry::ops {

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
