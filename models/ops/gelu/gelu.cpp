#include "models/ops/gelu/gelu.h"

#include "models/ops/dispatch.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

void bias_gelu_forward(const at::Tensor& a, const at::Tensor& bias, at::Tensor& h, at::Tensor& g) {
  const GeluForward its = {.extent = extent_of(a),
                           .a = data_of(a),
                           .bias = data_of(bias),
                           .h = data_of(h),
                           .g = data_of(g)};
  kernels_for(a).bias_gelu_forward(its, launch_on(a));
}

void gelu_backward(const at::Tensor& dg,
                   const at::Tensor& h,
                   at::Tensor& dh,
                   at::Tensor& dbias,
                   const at::Tensor& g,
                   Scratch& scratch) {
  const GeluBackward its = {.extent = extent_of(dg),
                            .dg = data_of(dg),
                            .h = data_of(h),
                            .dh = data_of(dh),
                            .dbias = data_of(dbias),
                            .g = data_of(g)};
  const ScratchScope scope(scratch);
  void* sums = take_bytes(scratch, column_sum_scratch_bytes(its.extent.T, its.extent.W));
  kernels_for(dg).gelu_backward(its, launch_on(dg, sums));
}

}  // namespace ferry::ops
