#include "models/ops/head_norm/head_norm.h"
#include "models/ops/head_norm/head_norm_op.h"
#include "models/ops/rotary/rotary.h"
#include "models/ops/run.h"

namespace ferry::ops {

void run_head_norm(const OpCall& c) {
  const auto& with = c.op.with<HeadNormAttributes>();
  const Rotary rotary = rotary_of(with.heads, with.rope, /*interleaved=*/false);
  const HeadNorm norm = {.n_heads = with.heads.n_heads,
                         .n_kv_heads = with.heads.n_kv_heads,
                         .eps = with.eps,
                         .weight_offset = with.weight_offset};
  const auto weights = c.params<HeadNormParams>();
  at::Tensor& rstd = c.kept<HeadNormStates>().rstd;
  if (c.part == Part::backward) {
    const auto o = c.operands<HeadNormGrads>();
    const auto grads = c.grads<HeadNormParams>();
    if (!o.dx->is_alias_of(*o.dy)) o.dx->copy_(o.dy);
    rotary_backward(rotary, c.batch.position_ids, o.dx);
    return head_norm_backward(norm, o.qkv, weights.q_weight, weights.k_weight, rstd, o.dx,
                              grads.q_weight, grads.k_weight, c.scratch);
  }
  const auto o = c.operands<HeadNormValues>();
  head_norm_forward(norm, o.qkv, weights.q_weight, weights.k_weight, rstd, o.y);
  rotary_forward(rotary, c.batch.position_ids, o.y);
}

}  // namespace ferry::ops
