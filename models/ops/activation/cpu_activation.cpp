// The activation functions on the CPU.

#include "models/ops/activation/activation.h"
#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"

namespace ferry::ops::cpu {
namespace {

void activation_forward(const ActivationForward& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  const auto activate = kernels.activate[static_cast<size_t>(its.kind)];
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, W, its.a), biases(type, W, its.bias), before(type, W, its.h);
    Rows after(type, W, its.g);
    const float* bias = biases.read(0);
    for (int64_t t = begin; t < end; t++) {
      if (bias != nullptr)
        kernels.add_bias(before.write(t), in.read(t), bias, W);
      else
        std::copy_n(in.read(t), W, before.write(t));
      before.wrote(t);
      activate(after.write(t), before.read(t), W);
      after.wrote(t);
    }
  });
}

void activation_backward(const ActivationBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  const auto backward = row_kernels().activate_backward[static_cast<size_t>(its.kind)];
  auto* partial = its.dbias == nullptr ? nullptr : static_cast<float*>(on.scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows d_after(type, W, its.dg), before(type, W, its.h), d_before(type, W, its.dh);
    Rows after(type, W, its.g);
    float* sum = partial == nullptr ? nullptr : partial + block * W;
    if (sum != nullptr) std::fill_n(sum, W, 0.0f);
    for (int64_t t = begin; t < end; t++) {
      backward(d_before.write(t), after.write(t), d_after.read(t), before.read(t), sum, W);
      d_before.wrote(t);
      after.wrote(t);
    }
  });
  if (partial == nullptr) return;
  void* const out[] = {its.dbias};
  add_partials(type, n_blocks_of(T), 1, W, partial, out);
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::ActivationKernels ferry::ops::kCpuActivation = {
    .activation_forward = cpu::activation_forward, .activation_backward = cpu::activation_backward};
