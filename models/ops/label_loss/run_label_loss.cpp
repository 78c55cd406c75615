#include "models/ops/cross_entropy/cross_entropy.h"
#include "models/ops/label_loss/label_loss.h"
#include "models/ops/label_loss/label_loss_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

namespace {

/** A sequence has one of several labels. */
bool has_classes(LossKind kind) {
  return kind == LossKind::cross_entropy || kind == LossKind::prompt;
}

void label_loss(const OpCall& c, const at::Tensor& real) {
  const at::Tensor& weights = c.batch.class_weights;
  const bool is_by_token = c.loss_kind == LossKind::token_classification;
  if (weights.defined()) {
    weighted_cross_entropy_forward(real, c.batch.labels, weights, c.batch.label_smoothing,
                                   c.batch.loss_weight, c.loss);
  } else if (is_by_token || has_classes(c.loss_kind)) {
    label_cross_entropy_forward(real, c.batch.labels, c.batch.label_smoothing, c.batch.loss_weight,
                                c.loss, c.scratch);
  } else {
    label_loss_forward(c.loss_kind, real, c.batch.labels, c.batch.loss_weight, c.loss);
  }
}

void label_loss_gradient(const OpCall& c, const at::Tensor& real, at::Tensor& d_real) {
  const at::Tensor& weights = c.batch.class_weights;
  const bool is_by_token = c.loss_kind == LossKind::token_classification;
  const float factor = c.batch.loss_weight * c.batch.grad_scale;
  if (weights.defined()) {
    weighted_cross_entropy_backward(real, c.batch.labels, weights, c.batch.label_smoothing, factor,
                                    d_real);
  } else if (is_by_token || has_classes(c.loss_kind)) {
    label_cross_entropy_backward(real, c.batch.labels, c.batch.label_smoothing, factor, d_real,
                                 c.scratch);
  } else {
    label_loss_backward(c.loss_kind, real, c.batch.labels, factor, d_real);
  }
}

}  // namespace

/** Sequences of the dummy tail have logits but no loss. */
void run_label_loss(const OpCall& c) {
  const auto n_real = [&](const at::Tensor& all) {
    return c.loss_kind == LossKind::token_classification ? all.size(0) : c.batch.n_seqs_real;
  };
  if (c.part == Part::forward) {
    const at::Tensor& all = c.operands<LabelLossValues>().logits;
    const int64_t n = n_real(all);
    if (c.logits.defined()) c.logits.copy_(all);
    if (!c.loss.defined()) return;
    if (n == 0) {
      c.loss.zero_();
    } else {
      label_loss(c, all.narrow(0, 0, n));
    }
    return;
  }
  const auto o = c.operands<LabelLossGrads>();
  const int64_t n = n_real(o.logits);
  at::Tensor& d_all = o.d_logits;
  if (n < d_all.size(0)) d_all.narrow(0, n, d_all.size(0) - n).zero_();
  if (n == 0) return;
  at::Tensor d_real = d_all.narrow(0, 0, n);
  label_loss_gradient(c, o.logits->narrow(0, 0, n), d_real);
}

}  // namespace ferry::ops
