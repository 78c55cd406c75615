// The norms with their dropout, bias and residual against fp64 ATen, the masks against the scalar
// Philox of simd/.

#include "tests/models/cuda/kernel_case.h"

namespace ferry::ops::cuda::test {
namespace {

constexpr float kEps = 1e-12f;

struct NormReference {
  at::Tensor normalised, rstd;

  explicit NormReference(const at::Tensor& z) {
    const auto centred = z - z.mean(1, true);
    rstd = at::rsqrt((centred * centred).mean(1, true) + static_cast<double>(kEps));
    normalised = centred * rstd;
  }
  at::Tensor gradient(const at::Tensor& dy, const at::Tensor& gamma) const {
    const auto d = dy * gamma;
    return rstd * (d - d.mean(1, true) - normalised * (d * normalised).mean(1, true));
  }
};

class Norm : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    const auto [T, W] = shape;
    gamma = random({W}) * 0.3 + 1;
    beta = random({W});
    mean = poisoned_f32({T});
    rstd = poisoned_f32({T});
    room = scratch(norm_backward_scratch_bytes(T, W));
  }

  NormForward forward_of(const at::Tensor& a, Dropout dropout, const at::Tensor& y) const {
    return {.type = type,
            .T = shape.rows,
            .W = shape.width,
            .eps = kEps,
            .dropout = dropout,
            .a = a.data_ptr(),
            .gamma = gamma.data_ptr(),
            .beta = beta.data_ptr(),
            .mean = floats(mean),
            .rstd = floats(rstd),
            .y = y.data_ptr()};
  }
  NormBackward backward_of(const at::Tensor& dy,
                           const at::Tensor& z,
                           Dropout dropout,
                           const at::Tensor& dz,
                           const at::Tensor& dgamma,
                           const at::Tensor& dbeta) const {
    return {.type = type,
            .T = shape.rows,
            .W = shape.width,
            .dropout = dropout,
            .dy = dy.data_ptr(),
            .z = z.data_ptr(),
            .mean = floats(mean),
            .rstd = floats(rstd),
            .gamma = gamma.data_ptr(),
            .dz = dz.data_ptr(),
            .dgamma = dgamma.data_ptr(),
            .dbeta = dbeta.data_ptr()};
  }

  at::Tensor gamma, beta, mean, rstd, room;
};

TEST_P(Norm, DropoutResidualNormForward) {
  const auto [T, W] = shape;
  for (const Dropout dropout : {Dropout{}, Dropout{0.1f, 0x123456789abcdefull}}) {
    const auto a = random({T, W}), bias = random({W}), residual = random({T, W}) + 0.25;
    auto z = poisoned({T, W}), y = poisoned({T, W});
    NormForward its = forward_of(a, dropout, y);
    its.bias = bias.data_ptr();
    its.residual = residual.data_ptr();
    its.z = z.data_ptr();
    kernels.dropout_residual_norm_forward(its, on());
    expect_close(z, (f64(a) + f64(bias)) * mask_of(dropout) + f64(residual), "z");
    const NormReference norm(f64(z));
    expect_close(y, norm.normalised * f64(gamma) + f64(beta), "y");
    EXPECT_TRUE(at::allclose(f64(mean), f64(z).mean(1), 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(f64(rstd), norm.rstd.view({T}), 1e-5, 0));

    auto y_again = poisoned({T, W});
    kernels.norm_apply({.type = type,
                        .T = T,
                        .W = W,
                        .z = z.data_ptr(),
                        .gamma = gamma.data_ptr(),
                        .beta = beta.data_ptr(),
                        .mean = floats(mean),
                        .rstd = floats(rstd),
                        .y = y_again.data_ptr()},
                       on());
    EXPECT_TRUE(at::equal(y_again, y));

    auto in_place = a.clone();
    auto mean_again = poisoned_f32({T}), rstd_again = poisoned_f32({T});
    its.a = its.y = in_place.data_ptr();
    its.mean = floats(mean_again);
    its.rstd = floats(rstd_again);
    kernels.dropout_residual_norm_forward(its, on());
    EXPECT_TRUE(at::equal(in_place, y));
    EXPECT_TRUE(at::equal(mean_again, mean) && at::equal(rstd_again, rstd));
  }
}

TEST_P(Norm, BiasAndResidualMayBeAbsent) {
  const auto [T, W] = shape;
  const auto a = random({T, W});
  auto z = poisoned({T, W}), y = poisoned({T, W});
  NormForward its = forward_of(a, {}, y);
  its.z = z.data_ptr();
  kernels.dropout_residual_norm_forward(its, on());
  EXPECT_TRUE(at::equal(z, a));
  expect_close(y, NormReference(f64(a)).normalised * f64(gamma) + f64(beta), "y");
}

TEST_P(Norm, MaskIsThatOfTheCpu) {
  const auto [T, W] = shape;
  const Dropout dropout{0.3f, ~0ull};
  const auto ones = at::ones({T, W}, options());
  auto z = poisoned({T, W}), y = poisoned({T, W});
  NormForward its = forward_of(ones, dropout, y);
  its.z = z.data_ptr();
  kernels.dropout_residual_norm_forward(its, on());
  EXPECT_TRUE(at::equal(z, mask_of(dropout).to(torch_type(type))));
}

TEST_P(Norm, DropoutResidualNormBackward) {
  const auto [T, W] = shape;
  const auto z = random({T, W}) + 0.5, dy = random({T, W}) + 0.25;
  const NormReference norm(f64(z));
  mean.copy_(f64(z).mean(1));
  rstd.copy_(norm.rstd.view({T}));
  for (const Dropout dropout : {Dropout{}, Dropout{0.1f, 77}}) {
    auto dz = poisoned({T, W}), da = poisoned({T, W});
    auto dgamma = poisoned({W}), dbeta = poisoned({W}), dbias = poisoned({W});
    const NormBackward its = [&] {
      NormBackward all = backward_of(dy, z, dropout, dz, dgamma, dbeta);
      all.da = da.data_ptr();
      all.dbias = dbias.data_ptr();
      return all;
    }();
    kernels.dropout_residual_norm_backward(its, on(room));
    const auto exact = norm.gradient(f64(dy), f64(gamma));
    const auto exact_da = exact * mask_of(dropout);
    expect_close(dz, exact, "dz", 2);
    expect_close(da, exact_da, "da", 2);
    expect_close(dgamma, (f64(dy) * norm.normalised).sum(0), "dgamma");
    expect_close(dbeta, f64(dy).sum(0), "dbeta");
    // Without dropout a long column sum of dz cancels: compare at the scale of what is added.
    const double scale = exact_da.norm().item<double>();
    const double error = (f64(dbias) - exact_da.sum(0)).norm().item<double>();
    EXPECT_LE(error, (type == DType::f32 ? 2e-6 : 6e-3) * scale) << "dbias";

    auto in_place = dy.clone();
    auto da_again = poisoned({T, W});
    NormBackward again = its;
    again.dy = again.dz = in_place.data_ptr();
    again.da = dropout.p > 0 ? da_again.data_ptr() : nullptr;
    again.dbias = nullptr;
    kernels.dropout_residual_norm_backward(again, on(room));
    EXPECT_TRUE(at::equal(in_place, dz));
    if (dropout.p > 0) {
      EXPECT_TRUE(at::equal(da_again, da));
    }

    // With the gradient that passes the norm by, in its own place.
    const auto d_sum = random({T, W});
    auto total = d_sum.clone();
    NormBackward with_sum = its;
    with_sum.d_sum = with_sum.dz = total.data_ptr();
    kernels.dropout_residual_norm_backward(with_sum, on(room));
    expect_close(total, exact + f64(d_sum), "dz + d_sum", 2);
    expect_close(da, (exact + f64(d_sum)) * mask_of(dropout), "da + d_sum", 2);
    expect_close(dgamma, (f64(dy) * norm.normalised).sum(0), "dgamma");
  }
}

TEST_P(Norm, NormDropoutBothWays) {
  const auto [T, W] = shape;
  const Dropout dropout{0.1f, 0xfeedull << 32};
  const auto z = random({T, W}) - 0.5, dy = random({T, W}) + 0.25;
  auto y = poisoned({T, W});
  kernels.norm_dropout_forward(forward_of(z, dropout, y), on());
  const NormReference norm(f64(z));
  const auto mask = mask_of(dropout);
  expect_close(y, (norm.normalised * f64(gamma) + f64(beta)) * mask, "y");

  auto dz = poisoned({T, W}), dgamma = poisoned({W}), dbeta = poisoned({W});
  NormBackward its = backward_of(dy, z, dropout, dz, dgamma, dbeta);
  kernels.norm_dropout_backward(its, on(room));
  const auto dropped = f64(dy) * mask;
  expect_close(dz, norm.gradient(dropped, f64(gamma)), "dz", 2);
  expect_close(dgamma, (dropped * norm.normalised).sum(0), "dgamma");
  auto total = random({T, W});
  const auto expected = norm.gradient(dropped, f64(gamma)) + f64(total);
  its.d_sum = its.dz = total.data_ptr();
  kernels.norm_dropout_backward(its, on(room));
  expect_close(total, expected, "dz + d_sum", 2);
  expect_close(dbeta, dropped.sum(0), "dbeta");
}

INSTANTIATE_TEST_SUITE_P(Shapes, Norm, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
