#include "models/ops/rms_norm/rms_norm.h"
#include "models/ops/rms_norm/rms_norm_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

void run_rms_norm(const OpCall& c) {
  const auto& with = c.op.with<RmsNormAttributes>();
  const at::Tensor& weight = c.params<RmsNormParams>().weight;
  at::Tensor& rstd = c.kept<RmsNormStates>().rstd;
  if (c.part == Part::forward) {
    const auto o = c.operands<RmsNormValues>();
    return residual_rms_norm_forward(o.a, o.residual, weight, with.eps, o.z, rstd, o.y,
                                     with.weight_offset);
  }
  if (c.part == Part::remake) {
    const auto o = c.operands<RmsNormRemake>();
    return rms_norm_apply(o.z, weight, rstd, o.y, with.weight_offset);
  }
  const auto o = c.operands<RmsNormGrads>();
  residual_rms_norm_backward(o.dy, o.z, weight, rstd, o.sum, o.dz, c.grads<RmsNormParams>().weight,
                             c.scratch, with.weight_offset);
}

}  // namespace ferry::ops
