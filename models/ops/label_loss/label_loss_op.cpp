#include "models/ops/label_loss/label_loss_op.h"

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

const OpDef kLabelLoss = {
    .name = "label_loss",
    .values = LabelLossValues<int>::kNames,
    .n_inputs = 1,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<LabelLossValues>(op);
          LabelLossGrads<int> places = {.logits = p.data(v.logits), .d_logits = kNone};
          places.d_logits = p.grad_place(v.logits, /*adds=*/false).place;
          p.call(p.op(), Part::backward, places);
        },
    .scratch =
        [](const OpCase& c, Part) {
          const ValueId logits = values_of<LabelLossValues>(c.op).logits;
          return cross_entropy_scratch(c.rows(logits), c.columns(logits));
        },
    .add_work =
        [](BlockWork& work, const OpCase&, const Call& call) {
          work.n_kernels += call.part == Part::backward ? 10 : 7;
          work.n_operations += call.part == Part::backward ? 10 : 7;
        },
};

}  // namespace ferry::ops
