#include "tests/perf/ops/cases.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace ferry::ops_bench {
namespace {

/** The gradients of the inputs by autograd, from those of what the formula gives. */
Call gradients_of(const Differentiable& its) {
  return [formula = its.libtorch, inputs = its.inputs, d_outputs = its.d_outputs,
          leaves = Tensors(), outputs = Tensors()]() mutable {
    if (outputs.empty()) {
      leaves.clear();  // of a call that ran out of memory
      for (const at::Tensor& input : inputs)
        leaves.push_back(input.detach().requires_grad_());
      outputs = formula(leaves);
    }
    return torch::autograd::grad(outputs, leaves, d_outputs, /*retain_graph=*/true);
  };
}

}  // namespace

at::Tensor Setup::random(at::IntArrayRef shape, double std) const {
  return at::randn(shape, at::device(device).dtype(at::kFloat)).mul_(std).to(type);
}

at::Tensor Setup::random_ints(int64_t below, int64_t n) const {
  return at::randint(below, {n}, at::device(device).dtype(at::kInt));
}

at::Tensor Setup::room(at::IntArrayRef shape) const {
  return at::full(shape, NAN, at::device(device).dtype(type));
}

at::Tensor Setup::room_f32(at::IntArrayRef shape) const {
  return at::full(shape, NAN, at::device(device).dtype(at::kFloat));
}

Workspace::Workspace(const Setup& setup, int64_t n_bytes)
    : bytes(at::empty({n_bytes}, at::device(setup.device).dtype(at::kByte))),
      scratch(bytes.data_ptr(), n_bytes, setup.device) {}

Operation operation_of(const Differentiable& its) {
  const auto formula = [formula = its.libtorch, inputs = its.inputs] { return formula(inputs); };
  return {its.name,
          {{"forward", its.forward_bytes, its.forward, formula, {}},
           {"backward", its.backward_bytes, its.backward, gradients_of(its), {}}}};
}

int64_t bytes_of(const Tensors& tensors) {
  int64_t n_bytes = 0;
  for (const at::Tensor& tensor : tensors)
    n_bytes += tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
  return n_bytes;
}

}  // namespace ferry::ops_bench
