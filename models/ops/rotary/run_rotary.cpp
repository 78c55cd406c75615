#include "models/ops/rotary/rotary.h"
#include "models/ops/rotary/rotary_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

Rotary rotary_of(const AttentionHeads& heads, const RopeTable& rope, bool interleaved) {
  return {.n_heads = heads.n_heads,
          .n_kv_heads = heads.n_kv_heads,
          .frequencies = rope.frequencies,
          .long_frequencies = rope.long_frequencies,
          .factor = rope.factor,
          .interleaved = interleaved};
}

void run_rotary(const OpCall& c) {
  const auto& with = c.op.with<RotaryAttributes>();
  const Rotary rotary = rotary_of(with.heads, with.rope, with.interleaved);
  if (c.part == Part::forward) {
    const auto o = c.operands<RotaryValues>();
    if (!o.y->is_alias_of(*o.qkv)) o.y->copy_(o.qkv);
    return rotary_forward(rotary, c.batch.position_ids, o.y);
  }
  const auto o = c.operands<RotaryGrads>();
  if (!o.dx->is_alias_of(*o.dy)) o.dx->copy_(o.dy);
  rotary_backward(rotary, c.batch.position_ids, o.dx);
}

}  // namespace ferry::ops
