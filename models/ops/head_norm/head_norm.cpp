#include "models/ops/head_norm/head_norm.h"

#include <fmt/format.h>

#include "models/ops/dispatch.h"
#include "models/ops/scratch_sizes.h"
#include "src/base/error.h"

namespace ferry::ops {
namespace {

HeadRows rows_of(const HeadNorm& norm, const at::Tensor& x, const at::Tensor& weight) {
  const HeadRows rows = {.type = dtype_of(x),
                         .T = x.size(0),
                         .n_heads = norm.n_heads,
                         .n_kv_heads = norm.n_kv_heads,
                         .head_width = weight.size(0)};
  FERRY_CHECK(rows.n_all() * rows.head_width == x.size(1), "{} heads of {} in rows of {}",
              rows.n_all(), rows.head_width, x.size(1));
  return rows;
}

}  // namespace

void head_norm_forward(const HeadNorm& norm,
                       const at::Tensor& x,
                       const at::Tensor& q_weight,
                       const at::Tensor& k_weight,
                       at::Tensor& rstd,
                       at::Tensor& y) {
  const HeadNormForward its = {.rows = rows_of(norm, x, q_weight),
                               .eps = norm.eps,
                               .weight_offset = norm.weight_offset,
                               .x = data_of(x),
                               .q_weight = data_of(q_weight),
                               .k_weight = data_of(k_weight),
                               .rstd = floats_of(rstd),
                               .y = data_of(y)};
  kernels_for(x, kCpuHeadNorm, kCudaHeadNorm).head_norm_forward(its, launch_on(x));
}

void head_norm_backward(const HeadNorm& norm,
                        const at::Tensor& x,
                        const at::Tensor& q_weight,
                        const at::Tensor& k_weight,
                        const at::Tensor& rstd,
                        at::Tensor& d,
                        at::Tensor& dq_weight,
                        at::Tensor& dk_weight,
                        Scratch& scratch) {
  const HeadNormBackward its = {.rows = rows_of(norm, x, q_weight),
                                .weight_offset = norm.weight_offset,
                                .x = data_of(x),
                                .rstd = floats_of(rstd),
                                .q_weight = data_of(q_weight),
                                .k_weight = data_of(k_weight),
                                .d = data_of(d),
                                .dq_weight = data_of(dq_weight),
                                .dk_weight = data_of(dk_weight)};
  const ScratchScope scope(scratch);
  void* sums = take_bytes(
      scratch, head_norm_backward_scratch_bytes(its.rows.T, its.rows.head_width, on_cuda(x)));
  kernels_for(x, kCpuHeadNorm, kCudaHeadNorm).head_norm_backward(its, launch_on(x, sums));
}

}  // namespace ferry::ops
