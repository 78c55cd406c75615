#include "models/ops/rms_norm/rms_norm.h"

#include <fmt/format.h>

#include "models/ops/dispatch.h"
#include "models/ops/scratch_sizes.h"
#include "src/base/error.h"

namespace ferry::ops {

void residual_rms_norm_forward(const at::Tensor& a,
                               const at::Tensor& residual,
                               const at::Tensor& weight,
                               float eps,
                               const at::Tensor& z,
                               at::Tensor& rstd,
                               at::Tensor& y,
                               float weight_offset) {
  FERRY_CHECK(z.defined() == residual.defined(), "residual {}, sum {}", residual.defined(),
              z.defined());
  const RmsNormForward its = {.extent = extent_of(a),
                              .eps = eps,
                              .weight_offset = weight_offset,
                              .a = data_of(a),
                              .residual = data_of(residual),
                              .weight = data_of(weight),
                              .z = data_of(z),
                              .rstd = floats_of(rstd),
                              .y = data_of(y)};
  kernels_for(a, kCpuRmsNorm, kCudaRmsNorm).residual_rms_norm_forward(its, launch_on(a));
}

void residual_rms_norm_backward(const at::Tensor& dy,
                                const at::Tensor& z,
                                const at::Tensor& weight,
                                const at::Tensor& rstd,
                                const at::Tensor& d_sum,
                                at::Tensor& dz,
                                at::Tensor& dweight,
                                Scratch& scratch,
                                float weight_offset) {
  const RmsNormBackward its = {.extent = extent_of(dy),
                               .weight_offset = weight_offset,
                               .dy = data_of(dy),
                               .z = data_of(z),
                               .rstd = floats_of(rstd),
                               .weight = data_of(weight),
                               .d_sum = data_of(d_sum),
                               .dz = data_of(dz),
                               .dweight = data_of(dweight)};
  const ScratchScope scope(scratch);
  void* sums =
      take_bytes(scratch, rms_norm_backward_scratch_bytes(its.extent.T, its.extent.W, on_cuda(dy)));
  kernels_for(dy, kCpuRmsNorm, kCudaRmsNorm).residual_rms_norm_backward(its, launch_on(dy, sums));
}

void rms_norm_apply(const at::Tensor& z,
                    const at::Tensor& weight,
                    const at::Tensor& rstd,
                    at::Tensor& y,
                    float weight_offset) {
  const RmsNormApply its = {.extent = extent_of(z),
                            .weight_offset = weight_offset,
                            .z = data_of(z),
                            .weight = data_of(weight),
                            .rstd = floats_of(rstd),
                            .y = data_of(y)};
  kernels_for(z, kCpuRmsNorm, kCudaRmsNorm).rms_norm_apply(its, launch_on(z));
}

}  // namespace ferry::ops
