#include "models/ops/run.h"
#include "models/ops/span_loss/span_loss.h"
#include "models/ops/span_loss/span_loss_op.h"

namespace ferry::ops {

void run_span_loss(const OpCall& c) {
  at::Tensor lse = c.kept<SpanLossStates>().lse->narrow(0, 0, c.batch.n_seqs_real);
  if (c.part == Part::forward) {
    const auto o = c.operands<SpanLossValues>();
    if (c.logits.defined()) c.logits.copy_(o.logits->t());
    return span_loss_forward(o.logits, c.batch, lse, c.loss, c.scratch);
  }
  const auto o = c.operands<SpanLossGrads>();
  span_loss_backward(o.logits, c.batch, lse, o.d_logits);
}

}  // namespace ferry::ops
