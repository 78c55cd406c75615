// The activation functions with bias against fp64 ATen, in place and out of place.

#include "models/ops/activation/activation.h"
#include "models/ops/gate/gate.h"
#include "tests/models/cuda/kernel_case.h"

namespace ferry::ops::cuda::test {
namespace {

using Gelu = KernelTest;

at::Tensor gelu_derivative(const at::Tensor& x) {
  const auto cdf = 0.5 * at::erfc(x * -M_SQRT1_2);
  return cdf + x * at::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}

TEST_P(Gelu, ForwardKeepsInputAndGivesGelu) {
  const auto [T, N] = shape;
  const auto a = random({T, N}) * 3, bias = random({N});
  auto h = poisoned({T, N}), g = poisoned({T, N});
  activation_forward(Activation::gelu, a, bias, h, g);
  expect_close(h, f64(a) + f64(bias), "h");
  expect_close(g, at::gelu(f64(h)), "g");

  auto in_place = a.clone();
  auto g_again = poisoned({T, N});
  activation_forward(Activation::gelu, in_place, bias, in_place, g_again);
  EXPECT_TRUE(at::equal(in_place, h));
  EXPECT_TRUE(at::equal(g_again, g));
}

TEST_P(Gelu, OtherKindsAndNoBias) {
  const auto [T, N] = shape;
  const auto a = random({T, N}) * 3, dg = random({T, N}) + 0.5;
  for (const Activation kind : {Activation::gelu, Activation::gelu_tanh, Activation::relu,
                                Activation::silu, Activation::quick_gelu}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const auto x = f64(a).requires_grad_();
    const auto exact = kind == Activation::gelu        ? at::gelu(x)
                       : kind == Activation::gelu_tanh ? at::gelu(x, "tanh")
                       : kind == Activation::relu      ? at::relu(x)
                       : kind == Activation::silu      ? at::silu(x)
                                                       : x * at::sigmoid(1.702 * x);
    exact.backward(f64(dg));
    auto h = a.clone(), g = poisoned({T, N}), again = poisoned({T, N}), dh = poisoned({T, N});
    Room room(0);
    activation_forward(kind, h, {}, h, g);
    activation_backward(kind, dg, h, dh, {}, again, room.scratch);
    EXPECT_TRUE(at::equal(h, a));
    EXPECT_TRUE(at::equal(g, again));
    expect_close(g, exact.detach(), "g");
    expect_close(dh, x.grad(), "dh");

    const auto gate_up = random({T, 2 * N}) * 3, up = gate_up.narrow(1, N, N);
    const auto gate = gate_up.narrow(1, 0, N).contiguous();
    auto out = poisoned({T, N}), d_gate_up = poisoned({T, 2 * N});
    activation_forward(kind, gate, {}, h, g);
    gate_forward(kind, gate_up, out);
    gate_backward(kind, dg, gate_up, d_gate_up, {});
    expect_close(out, f64(g) * f64(up), "gate", 2);
    expect_close(d_gate_up.narrow(1, N, N), f64(g) * f64(dg), "d_up", 2);
    const auto d_up = (f64(dg) * f64(up)).to(torch_type(type));
    activation_backward(kind, d_up, h, dh, {}, {}, room.scratch);
    expect_close(d_gate_up.narrow(1, 0, N), f64(dh), "d_gate", 3);
  }
}

TEST_P(Gelu, TailsAreRelativelyRight) {
  const auto [T, N] = shape;
  const double end = type == DType::f32 ? 6 : 9;
  const auto a = at::linspace(-end, end, T * N, at::device(at::kCUDA).dtype(at::kDouble))
                     .to(torch_type(type))
                     .view({T, N});
  const auto bias = at::zeros({N}, options());
  auto h = poisoned({T, N}), g = poisoned({T, N});
  activation_forward(Activation::gelu, a, bias, h, g);
  const auto x = f64(a);
  const auto exact = x * 0.5 * at::erfc(x * -M_SQRT1_2);
  const double step = type == DType::f32 ? 3e-6 : type == DType::f16 ? 6e-4 : 5e-3;
  // Below fp16's normal range only its absolute spacing can be asked for.
  const double floor = type == DType::f16 ? 6e-8 : 1e-30;
  const auto error = (f64(g) - exact).abs() - step * exact.abs() - floor;
  EXPECT_LE(error.max().item<double>(), 0);
}

TEST_P(Gelu, Backward) {
  const auto [T, N] = shape;
  const auto h = random({T, N}) * 2, dg = random({T, N}) + 0.5;
  auto dh = poisoned({T, N}), dbias = poisoned({N}), g = poisoned({T, N});
  Room room(column_sum_scratch_bytes(T, N));
  activation_backward(Activation::gelu, dg, h, dh, dbias, g, room.scratch);
  const auto exact = f64(dg) * gelu_derivative(f64(h));
  expect_close(dh, exact, "dh");
  expect_close(dbias, exact.sum(0), "dbias");
  expect_close(g, at::gelu(f64(h)), "g");

  auto in_place = dg.clone();
  auto dbias_again = poisoned({N});
  activation_backward(Activation::gelu, in_place, h, in_place, dbias_again, {}, room.scratch);
  EXPECT_TRUE(at::equal(in_place, dh));
  EXPECT_TRUE(at::equal(dbias_again, dbias));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Gelu, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
