#include "models/ops/span_loss/span_loss_op.h"

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

const OpDef kSpanLoss = {
    .name = "span_loss",
    .values = SpanLossValues<int>::kNames,
    .n_inputs = 1,
    .states = [](const OpCase& c) -> std::vector<SavedSpec> {
      const ValueId logits = values_of<SpanLossValues>(c.op).logits;
      return {{"lse", {c.shape.n_seqs_max, c.columns(logits)}, DType::f32}};
    },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<SpanLossValues>(op);
          SpanLossGrads<int> places = {.logits = p.data(v.logits), .d_logits = kNone};
          std::vector<int> states = p.states(p.op());
          places.d_logits = p.grad_place(v.logits, /*adds=*/false).place;
          p.call(p.op(), Part::backward, places, std::move(states));
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      const int64_t losses = span_loss_scratch_bytes(c.shape.n_seqs_max, c.target.is_cuda());
      // The sum of the losses, and what ATen adds it up in.
      return {.forward_bytes = part == Part::forward ? losses : 0,
              .library_bytes = c.target.is_cuda() ? stacked_bytes(kF32_bytes) + losses : 0};
    },
    .add_work =
        [](BlockWork& work, const OpCase&, const Call& call) {
          work.n_kernels += call.part == Part::backward ? 7 : 6;
          work.n_operations += call.part == Part::backward ? 7 : 6;
        },
};

}  // namespace ferry::ops
