#include "models/ops/label_loss/label_loss.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/sigmoid.h>

namespace ferry::ops {

void label_loss_forward(LossKind kind,
                        const at::Tensor& logits,
                        const at::Tensor& labels,
                        float weight,
                        at::Tensor& loss) {
  if (!loss.defined()) return;
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
  const at::Tensor y = labels.view(logits.sizes());
  const float each = factor / static_cast<float>(logits.size(1));
  if (kind == LossKind::multi_label) {
    d_logits.copy_(at::sigmoid(logits).sub_(y).mul_(each));
  } else {
    d_logits.copy_(logits.sub(y).mul_(2 * each));
  }
}

}  // namespace ferry::ops
