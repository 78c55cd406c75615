// LayerNorm on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/norm/norm.h"
#include "simd/philox.h"

namespace ferry::ops::cpu {
namespace {

void dropout_residual_norm_forward(const NormForward& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(its.dropout.p);
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, W, its.a), biases(type, W, its.bias), residuals(type, W, its.residual);
    Rows sums(type, W, its.z), gammas(type, W, its.gamma), betas(type, W, its.beta);
    Rows out(type, W, its.y);
    KeepRows keep(its.dropout, W);
    const float *bias = biases.read(0), *gamma = gammas.read(0), *beta = betas.read(0);
    for (int64_t t = begin; t < end; t++) {
      kernels.combine(sums.write(t), in.read(t), bias, residuals.read(t), keep.row(t), scale, W);
      sums.wrote(t);
      const float* sum = sums.read(t);
      kernels.moments(sum, W, its.eps, its.mean + t, its.rstd + t);
      kernels.normalise(out.write(t), sum, its.mean[t], its.rstd[t], gamma, beta, nullptr, 1, W);
      out.wrote(t);
    }
  });
}

void norm_dropout_forward(const NormForward& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(its.dropout.p);
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows sums(type, W, its.a), gammas(type, W, its.gamma), betas(type, W, its.beta);
    Rows out(type, W, its.y);
    KeepRows keep(its.dropout, W);
    const float *gamma = gammas.read(0), *beta = betas.read(0);
    for (int64_t t = begin; t < end; t++) {
      const float* sum = sums.read(t);
      kernels.moments(sum, W, its.eps, its.mean + t, its.rstd + t);
      kernels.normalise(out.write(t), sum, its.mean[t], its.rstd[t], gamma, beta, keep.row(t),
                        scale, W);
      out.wrote(t);
    }
  });
}

void norm_apply(const NormApply& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows sums(type, W, its.z), gammas(type, W, its.gamma), betas(type, W, its.beta);
    Rows out(type, W, its.y);
    const float *gamma = gammas.read(0), *beta = betas.read(0);
    for (int64_t t = begin; t < end; t++) {
      kernels.normalise(out.write(t), sums.read(t), its.mean[t], its.rstd[t], gamma, beta, nullptr,
                        1, W);
      out.wrote(t);
    }
  });
}

void dropout_residual_norm_backward(const NormBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(its.dropout.p);
  auto* partial = static_cast<float*>(on.scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_out(type, W, its.dy), sums(type, W, its.z), gammas(type, W, its.gamma);
    Rows d_sums(type, W, its.dz), d_in(type, W, its.da), d_others(type, W, its.d_sum);
    KeepRows keep(its.dropout, W);
    std::vector<float> without_da(its.da == nullptr ? static_cast<size_t>(W) : 0);
    const float* gamma = gammas.read(0);
    float* sum = partial + block * 3 * W;
    std::fill_n(sum, 3 * W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      float* d = d_sums.write(t);
      kernels.norm_backward(d, d_out.read(t), sums.read(t), its.mean[t], its.rstd[t], gamma,
                            d_others.read(t), nullptr, 1, sum, sum + W, W);
      d_sums.wrote(t);
      float* to = its.da == nullptr ? without_da.data() : d_in.write(t);
      kernels.combine_backward(to, d, keep.row(t), scale, sum + 2 * W, W);
      d_in.wrote(t);
    }
  });
  void* const out[] = {its.dgamma, its.dbeta, its.dbias};
  add_partials(type, n_blocks_of(T), 3, W, partial, out);
}

void norm_dropout_backward(const NormBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(its.dropout.p);
  auto* partial = static_cast<float*>(on.scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_out(type, W, its.dy), sums(type, W, its.z), gammas(type, W, its.gamma);
    Rows d_sums(type, W, its.dz), d_others(type, W, its.d_sum);
    KeepRows keep(its.dropout, W);
    const float* gamma = gammas.read(0);
    float* sum = partial + block * 2 * W;
    std::fill_n(sum, 2 * W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      kernels.norm_backward(d_sums.write(t), d_out.read(t), sums.read(t), its.mean[t], its.rstd[t],
                            gamma, d_others.read(t), keep.row(t), scale, sum, sum + W, W);
      d_sums.wrote(t);
    }
  });
  void* const out[] = {its.dgamma, its.dbeta};
  add_partials(type, n_blocks_of(T), 2, W, partial, out);
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::NormKernels ferry::ops::kCpuNorm = {
    .dropout_residual_norm_forward = cpu::dropout_residual_norm_forward,
    .norm_dropout_forward = cpu::norm_dropout_forward,
    .norm_apply = cpu::norm_apply,
    .dropout_residual_norm_backward = cpu::dropout_residual_norm_backward,
    .norm_dropout_backward = cpu::norm_dropout_backward};
