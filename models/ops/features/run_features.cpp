#include "models/ops/features/features_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

void run_features(const OpCall& c) {
  c.operands<FeaturesValues>().y->copy_(c.batch.features);
}

}  // namespace ferry::ops
