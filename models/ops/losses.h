#pragma once
// Losses of the heads on logits, forward and backward. Cross entropy takes its classes in pieces,
// so that a vocabulary's logits need never exist at once. Labels below zero are no item. Values are
// fp32 whatever the logits' type; `weight` is what each item's loss counts (design 5: one over the
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

/** Cross entropy over a vocabulary, kVocabChunk words at a time: logits = t word^T + bias never
 * exist as a whole, and the backward computes them again. lse is kept for it. `logits`, if defined,
 * (rows, V) fp32, receives them all. A causal language model's labels are the next tokens: its
 * batch has them shifted. */
void vocabulary_loss_forward(const at::Tensor& t,       // (rows, W)
                             const at::Tensor& word,    // (V, W)
                             const at::Tensor& bias,    // (V) or undefined
                             const at::Tensor& labels,  // (rows) int32
                             float smoothing,
                             float weight,
                             at::Tensor& lse,
                             at::Tensor& loss,
                             at::Tensor& logits,
                             Scratch& scratch);
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
                              Scratch& scratch);

}  // namespace ferry::ops
