// RMSNorm on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/cpu/weight.h"
#include "models/ops/rms_norm/rms_norm.h"

namespace ferry::ops::cpu {
namespace {

void residual_rms_norm_forward(const RmsNormForward& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, W, its.a), residuals(type, W, its.residual), sums(type, W, its.z);
    Rows out(type, W, its.y);
    const Weight scales(type, W, its.weight, its.weight_offset);
    const float* weight = scales.values();
    for (int64_t t = begin; t < end; t++) {
      const float* sum = in.read(t);
      if (its.z != nullptr) {
        kernels.combine(sums.write(t), sum, nullptr, residuals.read(t), nullptr, 1, W);
        sums.wrote(t);
        sum = sums.read(t);
      }
      its.rstd[t] = kernels.root_mean_square(sum, W, its.eps);
      kernels.rms_normalise(out.write(t), sum, its.rstd[t], weight, W);
      out.wrote(t);
    }
  });
}

void rms_norm_apply(const RmsNormApply& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows sums(type, W, its.z), out(type, W, its.y);
    const Weight scales(type, W, its.weight, its.weight_offset);
    const float* weight = scales.values();
    for (int64_t t = begin; t < end; t++) {
      kernels.rms_normalise(out.write(t), sums.read(t), its.rstd[t], weight, W);
      out.wrote(t);
    }
  });
}

void residual_rms_norm_backward(const RmsNormBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  auto* partial = static_cast<float*>(on.scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_out(type, W, its.dy), sums(type, W, its.z);
    Rows d_others(type, W, its.d_sum), d_sums(type, W, its.dz);
    const Weight scales(type, W, its.weight, its.weight_offset);
    const float* weight = scales.values();
    float* sum = partial + block * W;
    std::fill_n(sum, W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      kernels.rms_backward(d_sums.write(t), d_out.read(t), sums.read(t), its.rstd[t], weight,
                           d_others.read(t), sum, W);
      d_sums.wrote(t);
    }
  });
  void* const out[] = {its.dweight};
  add_partials(type, n_blocks_of(T), 1, W, partial, out);
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::RmsNormKernels ferry::ops::kCpuRmsNorm = {
    .residual_rms_norm_forward = cpu::residual_rms_norm_forward,
    .rms_norm_apply = cpu::rms_norm_apply,
    .residual_rms_norm_backward = cpu::residual_rms_norm_backward};
