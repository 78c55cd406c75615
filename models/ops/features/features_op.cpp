#include "models/ops/features/features_op.h"

namespace ferry::ops {

const OpDef kFeatures = {
    .name = "features",
    .values = FeaturesValues<int>::kNames,
    .remake = [](PassPlanner& p, int op) { return p.remake(op); },
    // Nobody wants the batch's gradient.
    .plan_backward = [](BackwardPlanner& p,
                        const Op& op) { p.take_grad(values_of<FeaturesValues>(op).y); },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call&) {
          work.memory_bytes += c.traffic(values_of<FeaturesValues>(c.op).y, 3);
          ++work.n_kernels;
        },
};

}  // namespace ferry::ops
