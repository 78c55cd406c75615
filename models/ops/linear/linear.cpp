#include "models/ops/linear/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace ferry::ops {

void linear_forward(const at::Tensor& x,
                    const at::Tensor& w,
                    const at::Tensor& bias,
                    at::Tensor& y) {
  if (bias.defined()) {
    at::addmm_out(y, bias, x, w.t());
  } else {
    at::mm_out(y, x, w.t());
  }
}

void linear_forward_add(const at::Tensor& x,
                        const at::Tensor& w,
                        const at::Tensor& residual,
                        at::Tensor& y) {
  at::addmm_out(y, residual, x, w.t());
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

void linear_backward_input(const at::Tensor& dy, const at::Tensor& w, at::Tensor& dx) {
  at::mm_out(dx, dy, w);
}

void linear_backward_input_add(const at::Tensor& dy,
                               const at::Tensor& w,
                               const at::Tensor& residual,
                               at::Tensor& dx) {
  at::addmm_out(dx, residual, dy, w);
}

void linear_backward_weight(const at::Tensor& dy, const at::Tensor& x, at::Tensor& dw) {
  if (!dw.defined()) return;
  at::mm_out(dw, dy.t(), x);
}

}  // namespace ferry::ops
