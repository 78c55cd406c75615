#pragma once
// Cross entropy of logits, which takes its classes in pieces, so that a vocabulary's logits need
// never exist at once. Labels below zero are no item. Values are fp32 whatever the logits' type;
// `weight` is what each item's loss counts (one over the step's items), `factor` that
// times the loss scale.

#include "models/ops/operation.h"

namespace ferry::ops {

/** Takes a piece of each row's logits, classes [first_class, first_class + n_classes), into what is
 * known of the row: the largest, the sum of exp(logit - largest), the sum, and the label's, which
 * changes only where the piece holds it. */
struct TakeLogits {
  Extent extent;  // (n_rows, n_classes)
  int64_t first_class = 0;
  const void* logits = nullptr;     // (n_rows, n_classes)
  const int32_t* labels = nullptr;  // (n_rows)
  float* largest = nullptr;         // (n_rows), as the next three
  float* sum_exp = nullptr;
  float* sum = nullptr;
  float* label_logit = nullptr;
};

/** logits = cap * tanh(logits / cap). */
struct CapLogits {
  Extent extent;  // (n_rows, n_classes)
  float cap = 1;
  void* logits = nullptr;  // (n_rows, n_classes)
};

/** logits = factor * row weight * (exp(logits - lse) - uniform - on_label * [class is label]), 0 in
 * rows without a label; of capped logits times the cap's derivative, 1 - (logits / cap)^2. */
struct LogitsBackward {
  Extent extent;  // (n_rows, n_classes)
  int64_t first_class = 0;
  void* logits = nullptr;           // (n_rows, n_classes)
  const int32_t* labels = nullptr;  // (n_rows)
  const float* lse = nullptr;       // (n_rows)
  float uniform = 0, on_label = 0, factor = 0;
  float cap = 0;                       ///< 0: none
  const float* row_weights = nullptr;  ///< (n_rows), times the factor; null: 1
};

struct CrossEntropyKernels {
  Kernel<TakeLogits> take_logits;
  Kernel<LogitsBackward> logits_backward;
  Kernel<CapLogits> cap_logits;
};
extern const CrossEntropyKernels kCpuCrossEntropy, kCudaCrossEntropy;

struct LogitsState;  // logits_state.h

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
 * label] - smoothing / n_classes), and zero in rows without a label. `row_weights`, if there,
 * (rows) fp32, multiply the factor of their rows. */
void cross_entropy_backward(at::Tensor& logits,  // (rows, C)
                            int64_t first_class,
                            const at::Tensor& labels,  // (rows) int32
                            const at::Tensor& lse,     // (rows)
                            int64_t n_classes,
                            float smoothing,
                            float factor,
                            float soft_cap = 0,
                            const at::Tensor* row_weights = nullptr);
/** Works in place: a soft cap of the logits, of which cross_entropy_backward is told. */
void cap_logits(at::Tensor& logits, float soft_cap);

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
