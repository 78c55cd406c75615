#include "models/ops/rotary/rotary_op.h"

#include <fmt/format.h>

namespace ferry::ops {

std::string text_of(const AttentionHeads& heads) {
  return fmt::format("heads {} of {}, {} wide", heads.n_heads, heads.n_kv_heads, heads.head_width);
}

std::string text_of(const RopeTable& rope) {
  return fmt::format("rope [{}] [{}] from {} factor {}", fmt::join(rope.frequencies, " "),
                     fmt::join(rope.long_frequencies, " "), rope.long_from, rope.factor);
}

const OpDef kRotary = {
    .name = "rotary",
    .values = RotaryValues<int>::kNames,
    .n_inputs = 1,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<RotaryAttributes>();
          return fmt::format("{} {} interleaved {}", text_of(with.heads), text_of(with.rope),
                             with.interleaved);
        },
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<RotaryValues>(op);
          const int dy = p.take_grad(v.y);
          const int dx = p.grad_place(v.qkv, /*adds=*/false, {dy}).place;
          p.call(p.op(), Part::backward, RotaryGrads<int>{.dy = dy, .dx = dx});
        },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call&) {
          work.memory_bytes += c.traffic(values_of<RotaryValues>(c.op).y, 2);
          ++work.n_kernels;
        },
};

}  // namespace ferry::ops
