// GELU with bias against fp64 ATen, in place and out of place.

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
  bias_gelu_forward(a, bias, h, g);
  expect_close(h, f64(a) + f64(bias), "h");
  expect_close(g, at::gelu(f64(h)), "g");

  auto in_place = a.clone();
  auto g_again = poisoned({T, N});
  bias_gelu_forward(in_place, bias, in_place, g_again);
  EXPECT_TRUE(at::equal(in_place, h));
  EXPECT_TRUE(at::equal(g_again, g));
}

TEST_P(Gelu, TailsAreRelativelyRight) {
  const auto [T, N] = shape;
  const double end = type == DType::f32 ? 6 : 9;
  const auto a = at::linspace(-end, end, T * N, at::device(at::kCUDA).dtype(at::kDouble))
                     .to(torch_type(type))
                     .view({T, N});
  const auto bias = at::zeros({N}, options());
  auto h = poisoned({T, N}), g = poisoned({T, N});
  bias_gelu_forward(a, bias, h, g);
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
  gelu_backward(dg, h, dh, dbias, g, room.scratch);
  const auto exact = f64(dg) * gelu_derivative(f64(h));
  expect_close(dh, exact, "dh");
  expect_close(dbias, exact.sum(0), "dbias");
  expect_close(g, at::gelu(f64(h)), "g");

  auto in_place = dg.clone();
  auto dbias_again = poisoned({N});
  gelu_backward(in_place, h, in_place, dbias_again, {}, room.scratch);
  EXPECT_TRUE(at::equal(in_place, dh));
  EXPECT_TRUE(at::equal(dbias_again, dbias));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Gelu, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
