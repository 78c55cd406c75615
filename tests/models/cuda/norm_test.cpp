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

  at::Tensor gamma, beta, mean, rstd, room;
};

TEST_P(Norm, DropoutResidualNormForward) {
  const auto [T, W] = shape;
  for (const Dropout dropout : {Dropout{}, Dropout{0.1f, 0x123456789abcdefull}}) {
    const auto a = random({T, W}), bias = random({W}), residual = random({T, W}) + 0.25;
    auto z = poisoned({T, W}), y = poisoned({T, W});
    dropout_residual_norm_forward(stream, type, T, W, kEps, dropout, a.data_ptr(), bias.data_ptr(),
                                  residual.data_ptr(), gamma.data_ptr(), beta.data_ptr(),
                                  z.data_ptr(), mean.mutable_data_ptr<float>(),
                                  rstd.mutable_data_ptr<float>(), y.data_ptr());
    expect_close(z, (f64(a) + f64(bias)) * mask_of(dropout) + f64(residual), "z");
    const NormReference norm(f64(z));
    expect_close(y, norm.normalised * f64(gamma) + f64(beta), "y");
    EXPECT_TRUE(at::allclose(f64(mean), f64(z).mean(1), 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(f64(rstd), norm.rstd.view({T}), 1e-5, 0));

    auto y_again = poisoned({T, W});
    norm_apply(stream, type, T, W, z.data_ptr(), mean.const_data_ptr<float>(),
               rstd.const_data_ptr<float>(), gamma.data_ptr(), beta.data_ptr(), y_again.data_ptr());
    EXPECT_TRUE(at::equal(y_again, y));

    auto in_place = a.clone();
    auto mean_again = poisoned_f32({T}), rstd_again = poisoned_f32({T});
    dropout_residual_norm_forward(stream, type, T, W, kEps, dropout, in_place.data_ptr(),
                                  bias.data_ptr(), residual.data_ptr(), gamma.data_ptr(),
                                  beta.data_ptr(), z.data_ptr(),
                                  mean_again.mutable_data_ptr<float>(),
                                  rstd_again.mutable_data_ptr<float>(), in_place.data_ptr());
    EXPECT_TRUE(at::equal(in_place, y));
    EXPECT_TRUE(at::equal(mean_again, mean) && at::equal(rstd_again, rstd));
  }
}

TEST_P(Norm, BiasAndResidualMayBeAbsent) {
  const auto [T, W] = shape;
  const auto a = random({T, W});
  auto z = poisoned({T, W}), y = poisoned({T, W});
  dropout_residual_norm_forward(stream, type, T, W, kEps, {}, a.data_ptr(), nullptr, nullptr,
                                gamma.data_ptr(), beta.data_ptr(), z.data_ptr(),
                                mean.mutable_data_ptr<float>(), rstd.mutable_data_ptr<float>(),
                                y.data_ptr());
  EXPECT_TRUE(at::equal(z, a));
  expect_close(y, NormReference(f64(a)).normalised * f64(gamma) + f64(beta), "y");
}

TEST_P(Norm, MaskIsThatOfTheCpu) {
  const auto [T, W] = shape;
  const Dropout dropout{0.3f, ~0ull};
  const auto ones = at::ones({T, W}, options());
  auto z = poisoned({T, W}), y = poisoned({T, W});
  dropout_residual_norm_forward(stream, type, T, W, kEps, dropout, ones.data_ptr(), nullptr,
                                nullptr, gamma.data_ptr(), beta.data_ptr(), z.data_ptr(),
                                mean.mutable_data_ptr<float>(), rstd.mutable_data_ptr<float>(),
                                y.data_ptr());
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
    dropout_residual_norm_backward(
        stream, type, T, W, dropout, dy.data_ptr(), z.data_ptr(), mean.const_data_ptr<float>(),
        rstd.const_data_ptr<float>(), gamma.data_ptr(), nullptr, dz.data_ptr(), da.data_ptr(),
        dgamma.data_ptr(), dbeta.data_ptr(), dbias.data_ptr(), room.data_ptr());
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
    dropout_residual_norm_backward(stream, type, T, W, dropout, in_place.data_ptr(), z.data_ptr(),
                                   mean.const_data_ptr<float>(), rstd.const_data_ptr<float>(),
                                   gamma.data_ptr(), nullptr, in_place.data_ptr(),
                                   dropout.p > 0 ? da_again.data_ptr() : nullptr, dgamma.data_ptr(),
                                   dbeta.data_ptr(), nullptr, room.data_ptr());
    EXPECT_TRUE(at::equal(in_place, dz));
    if (dropout.p > 0) {
      EXPECT_TRUE(at::equal(da_again, da));
    }

    // With the gradient that passes the norm by, in its own place.
    const auto d_sum = random({T, W});
    auto total = d_sum.clone();
    dropout_residual_norm_backward(
        stream, type, T, W, dropout, dy.data_ptr(), z.data_ptr(), mean.const_data_ptr<float>(),
        rstd.const_data_ptr<float>(), gamma.data_ptr(), total.data_ptr(), total.data_ptr(),
        da.data_ptr(), dgamma.data_ptr(), dbeta.data_ptr(), dbias.data_ptr(), room.data_ptr());
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
  norm_dropout_forward(stream, type, T, W, kEps, dropout, z.data_ptr(), gamma.data_ptr(),
                       beta.data_ptr(), mean.mutable_data_ptr<float>(),
                       rstd.mutable_data_ptr<float>(), y.data_ptr());
  const NormReference norm(f64(z));
  const auto mask = mask_of(dropout);
  expect_close(y, (norm.normalised * f64(gamma) + f64(beta)) * mask, "y");

  auto dz = poisoned({T, W}), dgamma = poisoned({W}), dbeta = poisoned({W});
  norm_dropout_backward(stream, type, T, W, dropout, dy.data_ptr(), z.data_ptr(),
                        mean.const_data_ptr<float>(), rstd.const_data_ptr<float>(),
                        gamma.data_ptr(), nullptr, dz.data_ptr(), dgamma.data_ptr(),
                        dbeta.data_ptr(), room.data_ptr());
  const auto dropped = f64(dy) * mask;
  expect_close(dz, norm.gradient(dropped, f64(gamma)), "dz", 2);
  expect_close(dgamma, (dropped * norm.normalised).sum(0), "dgamma");
  auto total = random({T, W});
  const auto expected = norm.gradient(dropped, f64(gamma)) + f64(total);
  norm_dropout_backward(stream, type, T, W, dropout, dy.data_ptr(), z.data_ptr(),
                        mean.const_data_ptr<float>(), rstd.const_data_ptr<float>(),
                        gamma.data_ptr(), total.data_ptr(), total.data_ptr(), dgamma.data_ptr(),
                        dbeta.data_ptr(), room.data_ptr());
  expect_close(total, expected, "dz + d_sum", 2);
  expect_close(dbeta, dropped.sum(0), "dbeta");
}

INSTANTIATE_TEST_SUITE_P(Shapes, Norm, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
