#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/norm/norm.h"
#include "models/ops/norm/norm_op.h"
#include "models/ops/norm/norm_params.h"
#include "models/ops/run.h"

namespace ferry::ops {

namespace {

Dropout dropout_of_norm(const OpCall& c, const at::Tensor& z) {
  const auto& with = c.op.with<NormAttributes>();
  return dropout_of(c.key, with.random, with.dropout, z.size(1));
}

NormState state_of(const OpCall& c) {
  const auto kept = c.kept<NormStates>();
  return {*kept.mean, *kept.rstd};
}

void remake_norm(const OpCall& c, const NormParams& params) {
  const auto o = c.operands<NormValues>();
  norm_apply(o.z, params, state_of(c), o.y);
}

}  // namespace

void run_norm(const OpCall& c) {
  const auto of = c.params<LayerNormParams>();
  const NormParams params = {*of.weight, *of.bias};
  if (c.part == Part::remake) return remake_norm(c, params);
  NormState state = state_of(c);
  if (c.part == Part::forward) {
    const auto o = c.operands<NormValues>();
    return norm_dropout_forward(o.z, params, c.op.with<NormAttributes>().eps,
                                dropout_of_norm(c, o.z), state, o.y);
  }
  const auto o = c.operands<NormGrads>();
  const auto its = c.grads<LayerNormParams>();
  NormParams grads = {*its.weight, *its.bias};
  norm_dropout_backward(o.dy, o.z, params, state, o.sum, dropout_of_norm(c, o.z), o.dz, grads,
                        c.scratch);
}

void run_residual_norm(const OpCall& c) {
  const auto of = c.params<ResidualNormParams>();
  const NormParams params = {*of.weight, *of.bias};
  if (c.part == Part::remake) return remake_norm(c, params);
  NormState state = state_of(c);
  if (c.part == Part::forward) {
    const auto o = c.operands<ResidualNormValues>();
    return dropout_residual_norm_forward(o.a, of.bias_of_a, o.residual, params,
                                         c.op.with<NormAttributes>().eps, dropout_of_norm(c, o.z),
                                         o.z, state, o.y);
  }
  const auto o = c.operands<ResidualNormGrads>();
  const auto its = c.grads<ResidualNormParams>();
  NormParams grads = {*its.weight, *its.bias};
  dropout_residual_norm_backward(o.dy, o.z, params, state, o.d_sum, dropout_of_norm(c, o.z), o.dz,
                                 o.da, grads, its.bias_of_a, c.scratch);
}

}  // namespace ferry::ops
