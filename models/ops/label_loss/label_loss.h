#pragma once
// The losses of labels that are numbers, on tensors, forward and backward; `weight` and `factor` as
// in cross_entropy.h.

#include "models/core/loss_kind.h"
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

/** Cross entropy of few classes, each of which counts by its weight. With weight = 1 / the sum of
 * the weights of all labels it is torch.nn.CrossEntropyLoss(class_weights, label_smoothing). logits
 * (n, L) fp32, labels (n) int32, below 0 = none, class_weights (L) fp32. */
void weighted_cross_entropy_forward(const at::Tensor& logits,
                                    const at::Tensor& labels,
                                    const at::Tensor& class_weights,
                                    float smoothing,
                                    float weight,
                                    at::Tensor& loss);
void weighted_cross_entropy_backward(const at::Tensor& logits,
                                     const at::Tensor& labels,
                                     const at::Tensor& class_weights,
                                     float smoothing,
                                     float factor,
                                     at::Tensor& d_logits);

}  // namespace ferry::ops
