#include "models/ops/dropout/dropout_residual.h"

#include "models/ops/dispatch.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

Dropout dropout_of(const RandomKey& key, int operation, float p, int64_t columns) {
  if (!key.training) return {};
  return {p, key.of(operation), key.on_gpu ? key.on_gpu + operation : nullptr,
          key.first_token * columns};
}

void dropout(const at::Tensor& x, Dropout dropout, at::Tensor& out) {
  const DropoutRows its = {
      .extent = extent_of(x), .dropout = dropout, .x = data_of(x), .out = data_of(out)};
  kernels_for(x, kCpuDropout, kCudaDropout).dropout(its, launch_on(x));
}

void dropout_residual_forward(const at::Tensor& a,
                              const at::Tensor& bias,
                              const at::Tensor& residual,
                              Dropout dropout,
                              at::Tensor& y) {
  const DropoutResidualForward its = {.extent = extent_of(a),
                                      .dropout = dropout,
                                      .a = data_of(a),
                                      .bias = data_of(bias),
                                      .residual = data_of(residual),
                                      .y = data_of(y)};
  kernels_for(a, kCpuDropout, kCudaDropout).dropout_residual_forward(its, launch_on(a));
}

void dropout_residual_backward(const at::Tensor& dy,
                               Dropout dropout,
                               const at::Tensor& da,
                               at::Tensor& dbias,
                               Scratch& scratch) {
  check_da(da, dropout);
  const DropoutResidualBackward its = {.extent = extent_of(dy),
                                       .dropout = dropout,
                                       .dy = data_of(dy),
                                       .da = data_of(da),
                                       .dbias = data_of(dbias)};
  const ScratchScope scope(scratch);
  void* sums = take_bytes(scratch, column_sum_scratch_bytes(its.extent.T, its.extent.W));
  kernels_for(dy, kCpuDropout, kCudaDropout).dropout_residual_backward(its, launch_on(dy, sums));
}

}  // namespace ferry::ops
