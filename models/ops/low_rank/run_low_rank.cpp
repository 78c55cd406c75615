#include "models/ops/linear/linear.h"
#include "models/ops/low_rank/low_rank_op.h"
#include "models/ops/run.h"

namespace ferry::ops {
namespace {

/** work(columns of y, columns of h, rows of the weight) for each part. */
template <class Work>
void for_parts(const OpCall& c, const at::Tensor& y, const at::Tensor& h, const Work& work) {
  const auto& parts = c.op.with<LowRankAttributes>().parts;
  const int64_t rank = h.size(1) / static_cast<int64_t>(parts.size());
  int64_t first_row = 0, first_column = 0;
  for (const LowRankPart& part : parts) {
    work(y.narrow(1, part.first, part.n), h.narrow(1, first_column, rank),
         [&](const at::Tensor& weight) { return weight.narrow(0, first_row, part.n); });
    first_row += part.n;
    first_column += rank;
  }
}

}  // namespace

void run_low_rank(const OpCall& c) {
  const float factor = c.op.with<LowRankAttributes>().factor;
  if (c.part == Part::forward) {
    const auto o = c.operands<LowRankValues>();
    if (o.base->data_ptr() != o.y->data_ptr()) o.y->copy_(o.base);
    for_parts(c, o.y, o.h, [&](at::Tensor y, const at::Tensor& h, const auto& rows_of) {
      linear_forward_add(h, rows_of(*c.params<LowRankParams>().weight), y, y, factor);
    });
    return;
  }
  if (c.part == Part::backward) {
    const auto o = c.operands<LowRankGrads>();
    for_parts(c, o.dy, o.dh, [&](const at::Tensor& dy, at::Tensor dh, const auto& rows_of) {
      linear_backward_input(dy, rows_of(*c.params<LowRankParams>().weight), dh, factor);
    });
    return;
  }
  const auto o = c.operands<LowRankWeightGrads>();
  const at::Tensor& d_weight = c.grads<LowRankParams>().weight;
  if (!d_weight.defined()) return;
  for_parts(c, o.dy, o.h, [&](const at::Tensor& dy, const at::Tensor& h, const auto& rows_of) {
    at::Tensor dw = rows_of(d_weight);
    linear_backward_weight(dy, h, dw, factor);
  });
}

}  // namespace ferry::ops
