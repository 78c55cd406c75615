#include "models/ops/head_norm/head_norm_op.h"

#include <fmt/format.h>

namespace ferry::ops {

const OpDef kHeadNorm = {
    .name = "head_norm",
    .values = HeadNormValues<int>::kNames,
    .n_inputs = 1,
    .params = HeadNormParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<HeadNormAttributes>();
          return fmt::format("eps {} weight_offset {} {} {}", with.eps, with.weight_offset,
                             text_of(with.heads), text_of(with.rope));
        },
    .states = [](const OpCase& c) -> std::vector<SavedSpec> {
      const Value& y = c.program.value(values_of<HeadNormValues>(c.op).y);
      const AttentionHeads& heads = c.op.with<HeadNormAttributes>().heads;
      return {{y.name + ".rstd",
               {rows_of(y.rows, c.shape), heads.n_heads + heads.n_kv_heads},
               DType::f32}};
    },
    .remake = [](PassPlanner& p, int op) { return p.remake(op); },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<HeadNormValues>(op);
          const int dy = p.take_grad(v.y), qkv = p.data(v.qkv);
          const int dx = p.grad_place(v.qkv, /*adds=*/false, {dy}).place;
          p.call(p.op(), Part::backward, HeadNormGrads<int>{.dy = dy, .qkv = qkv, .dx = dx},
                 p.states(p.op()));
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      if (part != Part::backward) return {};
      return {.forward_bytes = stacked_bytes(head_norm_backward_scratch_bytes(
                  c.rows(values_of<HeadNormValues>(c.op).y),
                  c.op.with<HeadNormAttributes>().heads.head_width, c.target.is_cuda()))};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const bool is_backward = call.part == Part::backward;
          work.memory_bytes += c.traffic(values_of<HeadNormValues>(c.op).y, is_backward ? 5 : 4);
          work.n_kernels += is_backward ? 3 : 2;
        },
};

}  // namespace ferry::ops
