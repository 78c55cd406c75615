// The kernels of DoRA on a GPU against their definitions in fp64.

#include "models/ops/dora/dora.h"

#include "models/ops/dispatch.h"
#include "tests/models/cuda/kernel_case.h"

namespace ferry::ops::cuda::test {
namespace {

using Dora = KernelTest;

constexpr int64_t kRank = 5;

TEST_P(Dora, NormsOfRows) {
  const auto [rows, width] = shape;
  at::Tensor w = random({rows, width});
  const at::Tensor p = random({rows, kRank}), b = random({rows, kRank}) * 0.05,
                   magnitude = random({rows});
  w[rows / 2].zero_();
  b[rows / 2].zero_();
  at::Tensor scale = poisoned_f32({rows}), inverse = poisoned_f32({rows});
  kCudaDora.norms({.extent = extent_of(w),
                   .rank = kRank,
                   .factor = 0.5f,
                   .w = data_of(w),
                   .p = data_of(p),
                   .b = data_of(b),
                   .magnitude = data_of(magnitude),
                   .scale = floats_of(scale),
                   .inverse = floats_of(inverse)},
                  launch_on(w));
  const at::Tensor square = (f64(w) * f64(w)).sum(1) + 0.5 * (f64(p) * f64(b)).sum(1);
  const at::Tensor norm = square.clamp_min(0).sqrt();
  const at::Tensor is_there = norm > 0.1;
  const auto expect = [&](const at::Tensor& found, const at::Tensor& expected) {
    const at::Tensor off = ((f64(found) - expected) / expected.abs().clamp_min(1e-3)).abs();
    EXPECT_LT(at::where(is_there, off, at::zeros_like(off)).max().item<double>(), 1e-4);
  };
  expect(scale, f64(magnitude) / norm);
  expect(inverse, 1 / norm);
  EXPECT_EQ(scale[rows / 2].item<float>(), 1.0f);
  EXPECT_EQ(inverse[rows / 2].item<float>(), 0.0f);
}

TEST_P(Dora, ScalesColumns) {
  const auto [rows, width] = shape;
  const at::Tensor v = random({rows, width}), base = random({rows, width}),
                   plain = random({rows, width}), bias = random({width});
  const at::Tensor scale = at::randn({width}, options().dtype(at::kFloat));
  for (const bool has_base : {false, true}) {
    at::Tensor y = poisoned({rows, width});
    kCudaDora.forward({.extent = extent_of(v),
                       .bias_factor = 0.5f,
                       .v = data_of(v),
                       .scale = floats_of(scale),
                       .base = has_base ? data_of(base) : nullptr,
                       .plain = has_base ? data_of(plain) : nullptr,
                       .bias = data_of(bias),
                       .y = data_of(y)},
                      launch_on(v));
    at::Tensor expected = f64(v) * f64(scale) + 0.5 * f64(bias);
    if (has_base) expected = expected + f64(base) - f64(plain);
    expect_close(y, expected, "y");
  }
}

TEST_P(Dora, ScalesGradients) {
  const auto [rows, width] = shape;
  const at::Tensor v = random({rows, width}), given = random({rows, width});
  const at::Tensor scale = at::randn({width}, options().dtype(at::kFloat));
  const int64_t n_bytes = column_sum_scratch_bytes(rows, width);
  for (const bool has_plain : {false, true}) {
    Room room(n_bytes);
    at::Tensor dy = given.clone(), d_plain = poisoned({rows, width}),
               d_scale = poisoned_f32({width});
    at::Tensor dv = has_plain ? poisoned({rows, width}) : dy;
    kCudaDora.backward({.extent = extent_of(v),
                        .dy = data_of(dy),
                        .v = data_of(v),
                        .scale = floats_of(scale),
                        .dv = data_of(dv),
                        .d_plain = has_plain ? data_of(d_plain) : nullptr,
                        .d_scale = floats_of(d_scale)},
                       launch_on(v, room.bytes.data_ptr()));
    expect_close(dv, f64(given) * f64(scale), "dv");
    if (has_plain) expect_close(d_plain, -f64(given), "d_plain");
    const at::Tensor sums = (f64(given) * f64(v)).sum(0);
    EXPECT_LE((f64(d_scale) - sums).norm().item<double>(),
              1e-5 * (f64(given) * f64(v)).abs().sum(0).norm().item<double>());
  }
  at::Tensor product = poisoned({width});
  kCudaDora.product({.type = type,
                     .n = width,
                     .a = floats_of(scale),
                     .b = floats_of(scale),
                     .out = data_of(product)},
                    launch_on(product));
  expect_close(product, f64(scale) * f64(scale), "product");
}

INSTANTIATE_TEST_SUITE_P(Shapes, Dora, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
