#include <ATen/ops/sub.h>

#include "models/ops/rows/rows.h"
#include "models/ops/rows/rows_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

namespace {

/** `which`: the rows' numbers; undefined, all of them. */
void run_rows(const OpCall& c, const at::Tensor& which) {
  if (c.part == Part::backward) {
    const auto o = c.operands<RowsGrads>();
    if (!which.defined()) {
      o.dx->copy_(o.dy);
    } else {
      scatter_rows(o.dy, which, o.dx);
    }
    return;
  }
  const auto o = c.operands<RowsValues>();
  if (!which.defined()) {
    o.y->copy_(o.x);
  } else {
    gather_rows(o.x, which, o.y);
  }
}

}  // namespace

void run_first_rows(const OpCall& c) {
  run_rows(c, c.batch.cu_seqlens);
}

void run_last_rows(const OpCall& c) {
  const int64_t n = c.batch.n_seqs;
  at::Tensor which = c.scratch.take({n}, at::kInt);
  at::sub_out(which, c.batch.cu_seqlens.narrow(0, 1, n), 1);
  run_rows(c, which);
}

void run_labelled_rows(const OpCall& c) {
  run_rows(c, c.batch.label_rows);
}

void run_asked_rows(const OpCall& c) {
  FERRY_CHECK(c.batch.label_rows.defined() && c.batch.label_rows.size(0) == c.batch.n_seqs,
              "{} sequences, and no place in each", c.batch.n_seqs);
  run_rows(c, c.batch.label_rows);
}

}  // namespace ferry::ops
