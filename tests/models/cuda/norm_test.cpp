// The norms with their dropout, bias and residual against fp64 ATen, the masks against the scalar
// Philox of simd/.

#include <optional>

#include "models/ops/norm/norm.h"
#include "models/ops/norm/norm_params.h"
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
    norm = {random({W}) * 0.3 + 1, random({W})};
    gamma = f64(norm.weight);
    beta = f64(norm.bias);
    state = {poisoned_f32({T}), poisoned_f32({T})};
    room.emplace(norm_backward_scratch_bytes(T, W));
  }

  NormParams norm;
  at::Tensor gamma, beta;  // of norm, fp64
  NormState state;
  std::optional<Room> room;
};

TEST_P(Norm, DropoutResidualNormForward) {
  const auto [T, W] = shape;
  for (const Dropout dropout : {Dropout{}, Dropout{0.1f, 0x123456789abcdefull}}) {
    const auto a = random({T, W}), bias = random({W}), residual = random({T, W}) + 0.25;
    auto z = poisoned({T, W}), y = poisoned({T, W});
    dropout_residual_norm_forward(a, bias, residual, norm, kEps, dropout, z, state, y);
    expect_close(z, (f64(a) + f64(bias)) * mask_of(dropout) + f64(residual), "z");
    const NormReference reference(f64(z));
    expect_close(y, reference.normalised * gamma + beta, "y");
    EXPECT_TRUE(at::allclose(f64(state.mean), f64(z).mean(1), 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(f64(state.rstd), reference.rstd.view({T}), 1e-5, 0));

    auto y_again = poisoned({T, W});
    norm_apply(z, norm, state, y_again);
    EXPECT_TRUE(at::equal(y_again, y));

    auto in_place = a.clone();
    NormState again = {poisoned_f32({T}), poisoned_f32({T})};
    dropout_residual_norm_forward(in_place, bias, residual, norm, kEps, dropout, z, again,
                                  in_place);
    EXPECT_TRUE(at::equal(in_place, y));
    EXPECT_TRUE(at::equal(again.mean, state.mean) && at::equal(again.rstd, state.rstd));
  }
}

TEST_P(Norm, BiasAndResidualMayBeAbsent) {
  const auto [T, W] = shape;
  const auto a = random({T, W});
  auto z = poisoned({T, W}), y = poisoned({T, W});
  dropout_residual_norm_forward(a, {}, {}, norm, kEps, {}, z, state, y);
  EXPECT_TRUE(at::equal(z, a));
  expect_close(y, NormReference(f64(a)).normalised * gamma + beta, "y");
}

TEST_P(Norm, MaskIsThatOfTheCpu) {
  const auto [T, W] = shape;
  const Dropout dropout{0.3f, ~0ull};
  const auto ones = at::ones({T, W}, options());
  auto z = poisoned({T, W}), y = poisoned({T, W});
  dropout_residual_norm_forward(ones, {}, {}, norm, kEps, dropout, z, state, y);
  EXPECT_TRUE(at::equal(z, mask_of(dropout).to(torch_type(type))));
}

TEST_P(Norm, DropoutResidualNormBackward) {
  const auto [T, W] = shape;
  const auto z = random({T, W}) + 0.5, dy = random({T, W}) + 0.25;
  const NormReference reference(f64(z));
  state.mean.copy_(f64(z).mean(1));
  state.rstd.copy_(reference.rstd.view({T}));
  for (const Dropout dropout : {Dropout{}, Dropout{0.1f, 77}}) {
    auto dz = poisoned({T, W}), da = poisoned({T, W});
    NormParams d_norm = {poisoned({W}), poisoned({W})};
    auto dbias = poisoned({W});
    dropout_residual_norm_backward(dy, z, norm, state, {}, dropout, dz, da, d_norm, dbias,
                                   room->scratch);
    const auto exact = reference.gradient(f64(dy), gamma);
    const auto exact_da = exact * mask_of(dropout);
    expect_close(dz, exact, "dz", 2);
    expect_close(da, exact_da, "da", 2);
    expect_close(d_norm.weight, (f64(dy) * reference.normalised).sum(0), "dgamma");
    expect_close(d_norm.bias, f64(dy).sum(0), "dbeta");
    // Without dropout a long column sum of dz cancels: compare at the scale of what is added.
    const double scale = exact_da.norm().item<double>();
    const double error = (f64(dbias) - exact_da.sum(0)).norm().item<double>();
    EXPECT_LE(error, (type == DType::f32 ? 2e-6 : 6e-3) * scale) << "dbias";

    auto in_place = dy.clone();
    auto da_again = poisoned({T, W});
    dropout_residual_norm_backward(in_place, z, norm, state, {}, dropout, in_place,
                                   dropout.p > 0 ? da_again : at::Tensor(), d_norm, {},
                                   room->scratch);
    EXPECT_TRUE(at::equal(in_place, dz));
    if (dropout.p > 0) {
      EXPECT_TRUE(at::equal(da_again, da));
    }

    // With the gradient that passes the norm by, in its own place.
    const auto d_sum = random({T, W});
    auto total = d_sum.clone();
    dropout_residual_norm_backward(dy, z, norm, state, total, dropout, total, da, d_norm, dbias,
                                   room->scratch);
    expect_close(total, exact + f64(d_sum), "dz + d_sum", 2);
    expect_close(da, (exact + f64(d_sum)) * mask_of(dropout), "da + d_sum", 2);
    expect_close(d_norm.weight, (f64(dy) * reference.normalised).sum(0), "dgamma");
  }
}

TEST_P(Norm, NormDropoutBothWays) {
  const auto [T, W] = shape;
  const Dropout dropout{0.1f, 0xfeedull << 32};
  const auto z = random({T, W}) - 0.5, dy = random({T, W}) + 0.25;
  auto y = poisoned({T, W});
  norm_dropout_forward(z, norm, kEps, dropout, state, y);
  const NormReference reference(f64(z));
  const auto mask = mask_of(dropout);
  expect_close(y, (reference.normalised * gamma + beta) * mask, "y");

  auto dz = poisoned({T, W});
  NormParams d_norm = {poisoned({W}), poisoned({W})};
  norm_dropout_backward(dy, z, norm, state, {}, dropout, dz, d_norm, room->scratch);
  const auto dropped = f64(dy) * mask;
  expect_close(dz, reference.gradient(dropped, gamma), "dz", 2);
  expect_close(d_norm.weight, (dropped * reference.normalised).sum(0), "dgamma");
  auto total = random({T, W});
  const auto expected = reference.gradient(dropped, gamma) + f64(total);
  norm_dropout_backward(dy, z, norm, state, total, dropout, total, d_norm, room->scratch);
  expect_close(total, expected, "dz + d_sum", 2);
  expect_close(d_norm.bias, dropped.sum(0), "dbeta");
}

INSTANTIATE_TEST_SUITE_P(Shapes, Norm, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
