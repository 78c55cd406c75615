#pragma once
// The losses of labels that are numbers, on tensors, forward and backward; `weight` and `factor` as
// in cross_entropy.h.

#include "models/loss_kind.h"
#include "models/ops/operation.h"

namespace ferry::ops {

/** Binary cross entropy with logits (multi_label) or squared error (regression): a sample's loss is
 * the mean over its labels. logits (n, L) fp32, labels n * L fp32. Small: temporaries of n * L
 * elements come from LibTorch. */
void label_loss_forward(LossKind kind,
                        const at::Tensor& logits,
                        const at::Tensor& labels,
                        float weight,
                        at::Tensor& loss);
void label_loss_backward(LossKind kind,
                         const at::Tensor& logits,
                         const at::Tensor& labels,
                         float factor,
                         at::Tensor& d_logits);

}  // namespace ferry::ops
