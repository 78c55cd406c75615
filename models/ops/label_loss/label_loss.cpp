#include "models/ops/label_loss/label_loss.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace ferry::ops {
namespace {

/** By how much the rejected answer of each pair is above the chosen one, less the margin that the
 * chosen one is to have: (pairs). */
at::Tensor wrong_by(const at::Tensor& rewards, const at::Tensor& margins) {
  const at::Tensor pairs = rewards.view({-1, 2});
  return pairs.select(1, 1).sub(pairs.select(1, 0)).add_(margins.view({-1, 2}).select(1, 0));
}

}  // namespace

void label_loss_forward(LossKind kind,
                        const at::Tensor& logits,
                        const at::Tensor& labels,
                        float weight,
                        at::Tensor& loss) {
  if (!loss.defined()) return;
  if (kind == LossKind::reward) {
    loss.copy_(at::softplus(wrong_by(logits, labels)).sum().mul(weight));
    return;
  }
  const at::Tensor y = labels.view(logits.sizes());
  const at::Tensor sum =
      kind == LossKind::multi_label
          ? at::binary_cross_entropy_with_logits(logits, y, {}, {}, at::Reduction::Sum)
          : at::mse_loss(logits, y, at::Reduction::Sum);
  loss.copy_(sum.mul(weight / static_cast<float>(logits.size(1))));
}

void label_loss_backward(LossKind kind,
                         const at::Tensor& logits,
                         const at::Tensor& labels,
                         float factor,
                         at::Tensor& d_logits) {
  if (kind == LossKind::reward) {
    const at::Tensor by_rejected = at::sigmoid(wrong_by(logits, labels)).mul_(factor);
    const at::Tensor pairs = d_logits.view({-1, 2});
    pairs.select(1, 0).copy_(by_rejected).neg_();
    pairs.select(1, 1).copy_(by_rejected);
    return;
  }
  const at::Tensor y = labels.view(logits.sizes());
  const float each = factor / static_cast<float>(logits.size(1));
  if (kind == LossKind::multi_label) {
    d_logits.copy_(at::sigmoid(logits).sub_(y).mul_(each));
  } else {
    d_logits.copy_(logits.sub(y).mul_(2 * each));
  }
}

namespace {

/** What each class's log-probability counts in a row's loss: (n, L). */
at::Tensor shares_of(const at::Tensor& logits,
                     const at::Tensor& labels,
                     const at::Tensor& class_weights,
                     float smoothing) {
  const int64_t n_classes = logits.size(1);
  const at::Tensor classes = at::arange(n_classes, labels.options());
  const at::Tensor is_label = labels.unsqueeze(1).eq(classes.unsqueeze(0)).to(at::kFloat);
  const at::Tensor has_label = labels.ge(0).to(at::kFloat).unsqueeze(1);
  return is_label.mul_(1.0f - smoothing)
      .add_(has_label, smoothing / static_cast<float>(n_classes))
      .mul_(class_weights.unsqueeze(0));
}

}  // namespace

void weighted_cross_entropy_forward(const at::Tensor& logits,
                                    const at::Tensor& labels,
                                    const at::Tensor& class_weights,
                                    float smoothing,
                                    float weight,
                                    at::Tensor& loss) {
  if (!loss.defined()) return;
  const at::Tensor shares = shares_of(logits, labels, class_weights, smoothing);
  const at::Tensor items = at::log_softmax(logits, 1).mul_(shares);
  // A class of probability zero is none of the loss of other labels.
  loss.copy_(at::where(shares.eq(0), at::zeros_like(items), items).sum().mul_(-weight));
}

void weighted_cross_entropy_backward(const at::Tensor& logits,
                                     const at::Tensor& labels,
                                     const at::Tensor& class_weights,
                                     float smoothing,
                                     float factor,
                                     at::Tensor& d_logits) {
  const at::Tensor shares = shares_of(logits, labels, class_weights, smoothing);
  d_logits.copy_(
      at::softmax(logits, 1).mul_(shares.sum(1, /*keepdim=*/true)).sub_(shares).mul_(factor));
}

}  // namespace ferry::ops
