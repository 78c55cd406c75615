#pragma once
// The language-model head's loss on tensors, forward and backward; labels, `weight` and `factor` as
// in cross_entropy.h.

#include "models/ops/operation.h"

namespace ferry::ops {

/** Cross entropy over a vocabulary, kVocabChunk words at a time: logits = t word^T + bias never
 * exist as a whole, and the backward computes them again. lse is kept for it. `logits`, if defined,
 * (rows, V) fp32, receives them all. A causal language model's labels are the next tokens: its
 * batch has them shifted. With a soft cap the logits l are cap * tanh(l / cap) (Gemma 2). */
void vocabulary_loss_forward(const at::Tensor& t,       // (rows, W)
                             const at::Tensor& word,    // (V, W)
                             const at::Tensor& bias,    // (V) or undefined
                             const at::Tensor& labels,  // (rows) int32
                             float smoothing,
                             float weight,
                             at::Tensor& lse,
                             at::Tensor& loss,
                             at::Tensor& logits,
                             Scratch& scratch,
                             float soft_cap = 0);
/** dt summed over the chunks in fp32, dword and dbias (unless undefined) written whole. */
void vocabulary_loss_backward(const at::Tensor& t,
                              const at::Tensor& word,
                              const at::Tensor& bias,
                              const at::Tensor& labels,
                              const at::Tensor& lse,
                              float smoothing,
                              float factor,
                              at::Tensor& dt,
                              at::Tensor& dword,
                              const at::Tensor& dbias,
                              Scratch& scratch,
                              float soft_cap = 0);

}  // namespace ferry::ops
