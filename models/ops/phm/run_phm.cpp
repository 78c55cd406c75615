#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>

#include "models/ops/linear/linear.h"
#include "models/ops/phm/phm_op.h"
#include "models/ops/rows/rows.h"
#include "models/ops/run.h"

namespace ferry::ops {
namespace {

/** The parameters in fp32, and what is made of them, in the call's scratch. */
class Matrix {
 public:
  Matrix(const OpCall& c, int64_t in, int64_t out)
      : scratch_(c.scratch), n_(c.op.with<PhmAttributes>().n), in_(in / n_), out_(out / n_) {
    const auto params = c.params<PhmParams>();
    rule = as_f32(params.rule).view({n_, n_ * n_});
    left = as_f32(params.left).view({n_, in_, 1});
    right = as_f32(params.right).view({n_, 1, out_});
    products = floats({n_, in_, out_});
    at::mul_out(products, left, right);
    // By pairs of a row and a column of the rules, then by those of the products.
    sums = floats({n_ * n_, in_ * out_});
  }

  /** H (in, out), of the type of compute. */
  at::Tensor whole(at::ScalarType type) {
    at::mm_out(sums, rule.t(), products.view({n_, in_ * out_}));
    at::Tensor h = scratch_.take({n_ * in_, n_ * out_}, type);
    h.view({n_, in_, n_, out_}).copy_(by_pairs());
    return h;
  }

  /** Puts a matrix like H into `sums`. */
  void take_apart(const at::Tensor& h) { by_pairs().copy_(h.view({n_, in_, n_, out_})); }

  at::Tensor floats(at::IntArrayRef sizes) { return scratch_.take(sizes, at::kFloat); }

  at::Tensor rule;      // (n, n n)
  at::Tensor left;      // (n, in / n, 1)
  at::Tensor right;     // (n, 1, out / n)
  at::Tensor products;  // (n, in / n, out / n)
  at::Tensor sums;      // (n n, in out / n^2)

 private:
  at::Tensor as_f32(const at::Tensor& x) {
    at::Tensor copy = floats(x.sizes());
    copy.copy_(x);
    return copy;
  }
  at::Tensor by_pairs() { return sums.view({n_, n_, in_, out_}).permute({0, 2, 1, 3}); }

  Scratch& scratch_;
  int64_t n_, in_, out_;
};

void run_params(const OpCall& c) {
  const auto o = c.operands<PhmGrads>();
  const auto grads = c.grads<PhmParams>();
  const int64_t n = c.op.with<PhmAttributes>().n, in = o.x->size(1), out = o.dy->size(1);
  const float factor = c.op.with<PhmAttributes>().factor;
  const ScratchScope scope(c.scratch);
  Matrix matrix(c, in, out);
  at::Tensor dh = c.scratch.take({in, out}, o.dy->scalar_type());
  linear_backward_weight(o.x, o.dy, dh, factor);
  matrix.take_apart(dh);
  const at::Tensor products = matrix.products.view({n, in / n * (out / n)});
  if (grads.rule->defined()) {
    at::Tensor d_rule = matrix.floats({n, n * n});
    at::mm_out(d_rule, products, matrix.sums.t());
    grads.rule->view({n, n * n}).copy_(d_rule);
  }
  if (grads.left->defined() || grads.right->defined()) {
    at::Tensor d_products = matrix.floats({n, in / n * (out / n)});
    at::mm_out(d_products, matrix.rule, matrix.sums);
    const at::Tensor by_term = d_products.view({n, in / n, out / n});
    at::Tensor d_left = matrix.floats({n, in / n, 1}), d_right = matrix.floats({n, 1, out / n});
    at::bmm_out(d_left, by_term, matrix.right.transpose(1, 2));
    at::bmm_out(d_right, matrix.left.transpose(1, 2), by_term);
    if (grads.left->defined()) grads.left->view(d_left.sizes()).copy_(d_left);
    if (grads.right->defined()) grads.right->view(d_right.sizes()).copy_(d_right);
  }
  if (!c.params<PhmParams>().bias->defined() || !grads.bias->defined()) return;
  column_sum(o.dy, grads.bias, c.scratch);
  if (factor != 1) grads.bias->mul_(factor);
}

}  // namespace

void run_phm(const OpCall& c) {
  const float factor = c.op.with<PhmAttributes>().factor;
  if (c.part == Part::params) return run_params(c);
  const ScratchScope scope(c.scratch);
  if (c.part == Part::forward) {
    const auto o = c.operands<PhmValues>();
    const at::Tensor h = Matrix(c, o.x->size(1), o.y->size(1)).whole(o.y->scalar_type());
    return linear_forward(o.x, h.t(), c.params<PhmParams>().bias, o.y, factor);
  }
  const auto o = c.operands<PhmGrads>();
  const at::Tensor h = Matrix(c, o.dx->size(1), o.dy->size(1)).whole(o.dy->scalar_type());
  linear_backward_input(o.dy, h.t(), o.dx, factor);
}

}  // namespace ferry::ops
