// GELU on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/gelu/gelu_kernels.h"

namespace ferry::ops::cpu {
namespace {

void bias_gelu_forward(const GeluForward& its, const Launch&) {
  const RowKernels& kernels = row_kernels();
  const DType type = its.type;
  const int64_t N = its.N;
  for_row_blocks(its.T, N, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, N, its.a), biases(type, N, its.bias), before(type, N, its.h);
    Rows after(type, N, its.g);
    const float* bias = biases.read(0);
    for (int64_t t = begin; t < end; t++) {
      kernels.add_bias(before.write(t), in.read(t), bias, N);
      before.wrote(t);
      kernels.gelu(after.write(t), before.read(t), N);
      after.wrote(t);
    }
  });
}

void gelu_backward(const GeluBackward& its, const Launch& on) {
  const RowKernels& kernels = row_kernels();
  const DType type = its.type;
  const int64_t N = its.N;
  auto* partial = static_cast<float*>(on.scratch);
  for_row_blocks(its.T, N, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_after(type, N, its.dg), before(type, N, its.h), d_before(type, N, its.dh);
    Rows after(type, N, its.g);
    float* sum = partial + block * N;
    std::fill_n(sum, N, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      kernels.gelu_backward(d_before.write(t), after.write(t), d_after.read(t), before.read(t), sum,
                            N);
      d_before.wrote(t);
      after.wrote(t);
    }
  });
  void* const out[] = {its.dbias};
  add_partials(type, n_blocks_of(its.T), 1, N, partial, out);
}

}  // namespace

const GeluKernels kGelu = {.bias_gelu_forward = bias_gelu_forward, .gelu_backward = gelu_backward};

}  // namespace ferry::ops::cpu
