#include "models/ops/linear/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace ferry::ops {
namespace {

/** y = factor * a b. */
void product(const at::Tensor& a, const at::Tensor& b, at::Tensor& y, float factor) {
  if (factor == 1)
    at::mm_out(y, a, b);
  else
    at::addmm_out(y, y, a, b, /*beta=*/0, factor);  // y is written, not read
}

}  // namespace

void linear_forward(
    const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias, at::Tensor& y, float factor) {
  if (bias.defined()) {
    at::addmm_out(y, bias, x, w.t(), /*beta=*/factor, factor);
  } else {
    product(x, w.t(), y, factor);
  }
}

void linear_forward_add(const at::Tensor& x,
                        const at::Tensor& w,
                        const at::Tensor& residual,
                        at::Tensor& y,
                        float factor) {
  at::addmm_out(y, residual, x, w.t(), /*beta=*/1, factor);
}

void linear_forward_f32(const at::Tensor& x,
                        const at::Tensor& w,
                        const at::Tensor& bias,
                        at::Tensor& y,
                        Scratch& scratch) {
  if (x.scalar_type() == at::kFloat) return linear_forward(x, w, bias, y);
  const ScratchScope scope(scratch);
  at::Tensor rounded = scratch.take(y.sizes(), x.scalar_type());
  linear_forward(x, w, bias, rounded);
  y.copy_(rounded);
}

void linear_backward_input(const at::Tensor& dy,
                           const at::Tensor& w,
                           at::Tensor& dx,
                           float factor) {
  product(dy, w, dx, factor);
}

void linear_backward_input_add(const at::Tensor& dy,
                               const at::Tensor& w,
                               const at::Tensor& residual,
                               at::Tensor& dx,
                               float factor) {
  at::addmm_out(dx, residual, dy, w, /*beta=*/1, factor);
}

void linear_backward_weight(const at::Tensor& dy,
                            const at::Tensor& x,
                            at::Tensor& dw,
                            float factor) {
  if (dw.defined()) product(dy.t(), x, dw, factor);
}

}  // namespace ferry::ops
