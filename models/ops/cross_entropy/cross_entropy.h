#pragma once
// Cross entropy of logits on tensors, forward and backward. It takes its classes in pieces, so that
// a vocabulary's logits need never exist at once. Labels below zero are no item. Values are fp32
// whatever the logits' type; `weight` is what each item's loss counts (design 5: one over the
// step's items), `factor` that times the loss scale.

#include <ATen/core/Tensor.h>

#include "models/block.h"

namespace ferry::ops {

/** The running state of each row's logits, all (rows) fp32. */
struct LogitsState {
  at::Tensor largest;
  at::Tensor sum_exp;  ///< the sum of exp(logit - largest)
  at::Tensor sum;
  at::Tensor label_logit;

  /** Out of the scratch, before any logits. */
  static LogitsState take(int64_t rows, Scratch& scratch);
};

/** Takes in the logits (rows, C) of the classes [first_class, first_class + C). */
void take_logits(const at::Tensor& logits,
                 int64_t first_class,
                 const at::Tensor& labels,  // (rows) int32
                 LogitsState& state);

/** lse (rows) = log of the sum of exponentials. loss, if defined = weight * sum over items of
 *  lse - (1 - smoothing) logit[label] - smoothing * mean of the logits,
 * which is torch.nn.CrossEntropyLoss(label_smoothing). */
void cross_entropy_forward(const LogitsState& state,
                           const at::Tensor& labels,
                           int64_t n_classes,
                           float smoothing,
                           float weight,
                           at::Tensor& lse,
                           at::Tensor& loss);

/** Works in place: logits become their gradient, factor * (softmax - (1 - smoothing) [class is
 * label] - smoothing / n_classes), and zero in rows without a label. */
void cross_entropy_backward(at::Tensor& logits,  // (rows, C)
                            int64_t first_class,
                            const at::Tensor& labels,  // (rows) int32
                            const at::Tensor& lse,     // (rows)
                            int64_t n_classes,
                            float smoothing,
                            float factor);

/** Both directions where the classes are few: logits (rows, C) fp32, all at once; d_logits is not
 * logits. */
void label_cross_entropy_forward(const at::Tensor& logits,
                                 const at::Tensor& labels,  // (rows) int32
                                 float smoothing,
                                 float weight,
                                 at::Tensor& loss,
                                 Scratch& scratch);
void label_cross_entropy_backward(const at::Tensor& logits,
                                  const at::Tensor& labels,
                                  float smoothing,
                                  float factor,
                                  at::Tensor& d_logits,
                                  Scratch& scratch);

}  // namespace ferry::ops
