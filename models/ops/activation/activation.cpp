#include "models/ops/activation/activation.h"

#include "models/ops/dispatch.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

void activation_forward(
    Activation kind, const at::Tensor& a, const at::Tensor& bias, at::Tensor& h, at::Tensor& g) {
  const ActivationForward its = {.extent = extent_of(a),
                                 .kind = kind,
                                 .a = data_of(a),
                                 .bias = data_of(bias),
                                 .h = data_of(h),
                                 .g = data_of(g)};
  kernels_for(a, kCpuActivation, kCudaActivation).activation_forward(its, launch_on(a));
}

void activation_backward(Activation kind,
                         const at::Tensor& dg,
                         const at::Tensor& h,
                         at::Tensor& dh,
                         const at::Tensor& dbias,
                         const at::Tensor& g,
                         Scratch& scratch) {
  const ActivationBackward its = {.extent = extent_of(dg),
                                  .kind = kind,
                                  .dg = data_of(dg),
                                  .h = data_of(h),
                                  .dh = data_of(dh),
                                  .dbias = data_of(dbias),
                                  .g = data_of(g)};
  if (!dbias.defined())
    return kernels_for(dg, kCpuActivation, kCudaActivation).activation_backward(its, launch_on(dg));
  const ScratchScope scope(scratch);
  void* sums = take_bytes(scratch, column_sum_scratch_bytes(its.extent.T, its.extent.W));
  kernels_for(dg, kCpuActivation, kCudaActivation).activation_backward(its, launch_on(dg, sums));
}

}  // namespace ferry::ops
