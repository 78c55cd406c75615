// Dropout on the CPU, alone and with a residual sum.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/dropout/dropout_residual.h"
#include "simd/philox.h"

namespace ferry::ops::cpu {
namespace {

void dropout(const DropoutRows& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  constexpr int64_t kPiece = 4096;
  const int64_t element_bytes = static_cast<int64_t>(size_of(type)), n_all = T * W;
  at::parallel_for(0, (n_all + kPiece - 1) / kPiece, 4, [&](int64_t begin, int64_t end) {
    uint8_t keep[kPiece];
    for (int64_t piece = begin; piece < end; piece++) {
      const int64_t first = piece * kPiece, n = std::min(kPiece, n_all - first);
      simd::dropout_mask(keep, n, static_cast<uint64_t>(its.dropout.first_element + first),
                         its.dropout.key, its.dropout.p);
      simd::dropout_apply(static_cast<std::byte*>(its.out) + first * element_bytes,
                          static_cast<const std::byte*>(its.x) + first * element_bytes, type, keep,
                          n, its.dropout.p);
    }
  });
}

void dropout_residual_forward(const DropoutResidualForward& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(its.dropout.p);
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, W, its.a), biases(type, W, its.bias), residuals(type, W, its.residual);
    Rows out(type, W, its.y);
    KeepRows keep(its.dropout, W);
    const float* bias = biases.read(0);
    for (int64_t t = begin; t < end; t++) {
      kernels.combine(out.write(t), in.read(t), bias, residuals.read(t), keep.row(t), scale, W);
      out.wrote(t);
    }
  });
}

void dropout_residual_backward(const DropoutResidualBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  const float scale = simd::dropout_scale(its.dropout.p);
  auto* partial = static_cast<float*>(on.scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_out(type, W, its.dy), d_in(type, W, its.da);
    KeepRows keep(its.dropout, W);
    std::vector<float> without_da(its.da == nullptr ? static_cast<size_t>(W) : 0);
    float* sum = partial + block * W;
    std::fill_n(sum, W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      float* to = its.da == nullptr ? without_da.data() : d_in.write(t);
      kernels.combine_backward(to, d_out.read(t), keep.row(t), scale, sum, W);
      d_in.wrote(t);
    }
  });
  void* const out[] = {its.dbias};
  add_partials(type, n_blocks_of(T), 1, W, partial, out);
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::DropoutKernels ferry::ops::kCpuDropout = {
    .dropout = cpu::dropout,
    .dropout_residual_forward = cpu::dropout_residual_forward,
    .dropout_residual_backward = cpu::dropout_residual_backward};
