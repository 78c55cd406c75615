#include "models/ops/norm/norm.h"

#include "models/ops/dispatch.h"
#include "models/ops/norm/norm_params.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {
namespace {

/** The part that both backwards have in common. */
NormBackward backward_of(const at::Tensor& dy,
                         const at::Tensor& z,
                         const NormParams& norm,
                         const NormState& state,
                         const at::Tensor& d_sum,
                         Dropout dropout,
                         const at::Tensor& dz,
                         const NormParams& d_norm) {
  return {.extent = extent_of(dy),
          .dropout = dropout,
          .dy = data_of(dy),
          .z = data_of(z),
          .mean = floats_of(state.mean),
          .rstd = floats_of(state.rstd),
          .gamma = data_of(norm.weight),
          .d_sum = data_of(d_sum),
          .dz = data_of(dz),
          .dgamma = data_of(d_norm.weight),
          .dbeta = data_of(d_norm.bias)};
}

Launch launch_backward(const at::Tensor& dy, Scratch& scratch) {
  const int64_t n_bytes = norm_backward_scratch_bytes(dy.size(0), dy.size(1), on_cuda(dy));
  return launch_on(dy, take_bytes(scratch, n_bytes));
}

}  // namespace

void dropout_residual_norm_forward(const at::Tensor& a,
                                   const at::Tensor& bias,
                                   const at::Tensor& residual,
                                   const NormParams& norm,
                                   float eps,
                                   Dropout dropout,
                                   at::Tensor& z,
                                   NormState& state,
                                   at::Tensor& y) {
  const NormForward its = {.extent = extent_of(a),
                           .eps = eps,
                           .dropout = dropout,
                           .a = data_of(a),
                           .bias = data_of(bias),
                           .residual = data_of(residual),
                           .gamma = data_of(norm.weight),
                           .beta = data_of(norm.bias),
                           .z = data_of(z),
                           .mean = floats_of(state.mean),
                           .rstd = floats_of(state.rstd),
                           .y = data_of(y)};
  kernels_for(a, kCpuNorm, kCudaNorm).dropout_residual_norm_forward(its, launch_on(a));
}

void dropout_residual_norm_backward(const at::Tensor& dy,
                                    const at::Tensor& z,
                                    const NormParams& norm,
                                    const NormState& state,
                                    const at::Tensor& d_sum,
                                    Dropout dropout,
                                    at::Tensor& dz,
                                    const at::Tensor& da,
                                    NormParams& d_norm,
                                    const at::Tensor& dbias,
                                    Scratch& scratch) {
  check_da(da, dropout);
  const ScratchScope scope(scratch);
  NormBackward its = backward_of(dy, z, norm, state, d_sum, dropout, dz, d_norm);
  its.da = data_of(da);
  its.dbias = data_of(dbias);
  kernels_for(dy, kCpuNorm, kCudaNorm)
      .dropout_residual_norm_backward(its, launch_backward(dy, scratch));
}

void norm_apply(const at::Tensor& z,
                const NormParams& norm,
                const NormState& state,
                at::Tensor& y) {
  const NormApply its = {.extent = extent_of(z),
                         .z = data_of(z),
                         .gamma = data_of(norm.weight),
                         .beta = data_of(norm.bias),
                         .mean = floats_of(state.mean),
                         .rstd = floats_of(state.rstd),
                         .y = data_of(y)};
  kernels_for(z, kCpuNorm, kCudaNorm).norm_apply(its, launch_on(z));
}

void norm_dropout_forward(const at::Tensor& z,
                          const NormParams& norm,
                          float eps,
                          Dropout dropout,
                          NormState& state,
                          at::Tensor& y) {
  const NormForward its = {.extent = extent_of(z),
                           .eps = eps,
                           .dropout = dropout,
                           .a = data_of(z),
                           .gamma = data_of(norm.weight),
                           .beta = data_of(norm.bias),
                           .mean = floats_of(state.mean),
                           .rstd = floats_of(state.rstd),
                           .y = data_of(y)};
  kernels_for(z, kCpuNorm, kCudaNorm).norm_dropout_forward(its, launch_on(z));
}

void norm_dropout_backward(const at::Tensor& dy,
                           const at::Tensor& z,
                           const NormParams& norm,
                           const NormState& state,
                           const at::Tensor& d_sum,
                           Dropout dropout,
                           at::Tensor& dz,
                           NormParams& d_norm,
                           Scratch& scratch) {
  const ScratchScope scope(scratch);
  kernels_for(dy, kCpuNorm, kCudaNorm)
      .norm_dropout_backward(backward_of(dy, z, norm, state, d_sum, dropout, dz, d_norm),
                             launch_backward(dy, scratch));
}

}  // namespace ferry::ops
