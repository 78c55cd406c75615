// GELU on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/gelu/gelu.h"

namespace ferry::ops::cpu {
namespace {

void bias_gelu_forward(const GeluForward& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, W, its.a), biases(type, W, its.bias), before(type, W, its.h);
    Rows after(type, W, its.g);
    const float* bias = biases.read(0);
    for (int64_t t = begin; t < end; t++) {
      kernels.add_bias(before.write(t), in.read(t), bias, W);
      before.wrote(t);
      kernels.gelu(after.write(t), before.read(t), W);
      after.wrote(t);
    }
  });
}

void gelu_backward(const GeluBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  auto* partial = static_cast<float*>(on.scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_after(type, W, its.dg), before(type, W, its.h), d_before(type, W, its.dh);
    Rows after(type, W, its.g);
    float* sum = partial + block * W;
    std::fill_n(sum, W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      kernels.gelu_backward(d_before.write(t), after.write(t), d_after.read(t), before.read(t), sum,
                            W);
      d_before.wrote(t);
      after.wrote(t);
    }
  });
  void* const out[] = {its.dbias};
  add_partials(type, n_blocks_of(T), 1, W, partial, out);
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::GeluKernels ferry::ops::kCpuGelu = {.bias_gelu_forward = cpu::bias_gelu_forward,
                                                      .gelu_backward = cpu::gelu_backward};
