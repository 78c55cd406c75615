#include <ATen/ATen.h>

#include "models/ops/routed/routed.h"
#include "models/ops/routed/routed_op.h"
#include "models/ops/rows/rows.h"

namespace ferry::ops {

namespace {

/** The expert's rows of a tensor that has a row for each route. */
at::Tensor its_rows(const OpCall& c, const at::Tensor& of_all) {
  return of_all.view({of_all.size(0)}).narrow(0, c.routed.first, c.routed.n);
}

/** Adds rows to the rows of a sum that have these numbers; no number comes twice. */
void add_to_rows(const at::Tensor& from,
                 const at::Tensor& rows,
                 at::Tensor& sum,
                 Scratch& scratch) {
  at::Tensor added = scratch.take(from.sizes(), from.scalar_type());
  gather_rows(sum, rows, added);
  put_rows(added.add_(from), rows, sum);
}

}  // namespace

RoutedRows routed_rows(const at::Tensor& offsets, int64_t expert) {
  const at::Tensor rows = offsets.narrow(0, expert, 2).to(at::kCPU);
  const auto* n = rows.const_data_ptr<int32_t>();
  return {n[0], n[1] - n[0]};
}

void run_take_routed(const OpCall& c) {
  if (c.part != Part::backward) {
    const auto o = c.operands<TakeRoutedValues>();
    gather_rows(o.x, its_rows(c, o.routes), o.y);
    return;
  }
  const auto o = c.operands<TakeRoutedGrads>();
  if (!o.sum->defined())
    o.dx->zero_();
  else if (!o.dx->is_same(o.sum))
    o.dx->copy_(o.sum);
  add_to_rows(o.dy, its_rows(c, o.routes), o.dx, c.scratch);
}

void run_add_routed(const OpCall& c) {
  if (c.part != Part::backward) {
    const auto o = c.operands<AddRoutedValues>();
    if (!o.y->defined()) return;  // activations alone are made again
    at::Tensor weighed = c.scratch.take(o.x->sizes(), o.x->scalar_type()),
               weights = c.scratch.take({o.x->size(0), 1}, o.x->scalar_type());
    weights.view({o.x->size(0)}).copy_(its_rows(c, o.weights));
    at::mul_out(weighed, o.x, weights);
    add_to_rows(weighed, its_rows(c, o.routes), o.y, c.scratch);
    return;
  }
  const auto o = c.operands<AddRoutedGrads>();
  at::Tensor d_rows = c.scratch.take(o.x->sizes(), o.x->scalar_type()),
             weights = c.scratch.take({o.x->size(0), 1}, o.x->scalar_type());
  gather_rows(o.dy, its_rows(c, o.routes), d_rows);
  weights.view({o.x->size(0)}).copy_(its_rows(c, o.weights));
  at::mul_out(o.dx, d_rows, weights);
  d_rows.mul_(o.x);
  if (o.sum->defined() && !o.d_weights->is_same(o.sum)) o.d_weights->copy_(o.sum);
  at::Tensor d_weights = its_rows(c, o.d_weights);
  at::sum_out(d_weights, d_rows, {1}, /*keepdim=*/false, at::kFloat);
}

}  // namespace ferry::ops
