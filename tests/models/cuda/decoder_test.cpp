// The kernels that decoders add against fp64 ATen: RMSNorm, residual sums, rotary positions, the
// gated activation; in place and out of place, and the same bits again.

#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/gate/gate.h"
#include "models/ops/rms_norm/rms_norm.h"
#include "models/ops/rotary/rope_frequencies.h"
#include "models/ops/rotary/rotary.h"
#include "tests/models/cuda/kernel_case.h"

namespace ferry::ops::cuda::test {
namespace {

constexpr float kEps = 1e-5f;

using Decoder = KernelTest;

at::Tensor rstd_of(const at::Tensor& z) {
  return at::rsqrt((z * z).mean(1, true) + static_cast<double>(kEps));
}

TEST_P(Decoder, ResidualRmsNormForward) {
  const auto [T, W] = shape;
  const auto a = random({T, W}), residual = random({T, W}) + 0.25, weight = random({W}) * 0.3 + 1;
  auto z = poisoned({T, W}), y = poisoned({T, W}), rstd = poisoned_f32({T});
  residual_rms_norm_forward(a, residual, weight, kEps, z, rstd, y);
  expect_close(z, f64(a) + f64(residual), "z");
  expect_close(y, f64(z) * rstd_of(f64(z)) * f64(weight), "y");
  EXPECT_TRUE(at::allclose(f64(rstd), rstd_of(f64(z)).view({T}), 1e-5, 0));

  auto again = poisoned({T, W});
  rms_norm_apply(z, weight, rstd, again);
  EXPECT_TRUE(at::equal(again, y));
  auto alone = z.clone(), rstd_again = poisoned_f32({T});
  residual_rms_norm_forward(alone, {}, weight, kEps, {}, rstd_again, alone);
  EXPECT_TRUE(at::equal(alone, y));
  EXPECT_TRUE(at::equal(rstd_again, rstd));
}

TEST_P(Decoder, ResidualRmsNormBackward) {
  const auto [T, W] = shape;
  const auto z = random({T, W}) + 0.5, dy = random({T, W}) + 0.25, weight = random({W}) + 1;
  const auto exact_rstd = rstd_of(f64(z));
  const auto rstd = exact_rstd.view({T}).to(at::kFloat);
  const auto unit = f64(z) * exact_rstd, d = f64(dy) * f64(weight);
  const auto exact = exact_rstd * (d - unit * (d * unit).mean(1, true));
  Room room(rms_norm_backward_scratch_bytes(T, W));
  auto dz = poisoned({T, W}), dweight = poisoned({W});
  residual_rms_norm_backward(dy, z, weight, rstd, {}, dz, dweight, room.scratch);
  expect_close(dz, exact, "dz", 2);
  expect_close(dweight, (f64(dy) * unit).sum(0), "dweight");
  const auto first = dweight.clone();
  const auto d_sum = random({T, W});
  auto total = d_sum.clone();
  residual_rms_norm_backward(dy, z, weight, rstd, total, total, dweight, room.scratch);
  expect_close(total, exact + f64(d_sum), "dz + d_sum", 2);
  EXPECT_TRUE(at::equal(dweight, first));
}

TEST_P(Decoder, DropoutResidual) {
  const auto [T, W] = shape;
  for (const Dropout dropout : {Dropout{}, Dropout{0.1f, 0x123456789abcdefull}}) {
    const auto a = random({T, W}), bias = random({W}), residual = random({T, W});
    const auto dy = random({T, W}) + 0.5, mask = mask_of(dropout);
    auto y = a.clone(), without = poisoned({T, W}), alone = poisoned({T, W});
    auto da = poisoned({T, W}), dbias = poisoned({W});
    dropout_residual_forward(y, bias, residual, dropout, y);
    dropout_residual_forward(a, {}, residual, dropout, without);
    expect_close(y, (f64(a) + f64(bias)) * mask + f64(residual), "y");
    ops::dropout(a, dropout, alone);
    expect_close(without, f64(a) * mask + f64(residual), "y without bias");
    expect_close(alone, f64(a) * mask, "dropout alone");
    Room room(column_sum_scratch_bytes(T, W));
    dropout_residual_backward(dy, dropout, da, dbias, room.scratch);
    expect_close(da, f64(dy) * mask, "da");
    expect_close(dbias, (f64(dy) * mask).sum(0), "dbias");
  }
}

TEST_P(Decoder, RotaryThereAndBack) {
  const auto [T, D] = shape;  // a head is as wide as the case's row
  if (D % 2 != 0 || D / 2 > kRotaryPairs_max) GTEST_SKIP() << "no head has this width";
  constexpr int64_t kHeads = 7, kTurned = 5;
  const RopeTable table = rope_table({.width = D});
  const Rotary rotary = {.n_heads = 3, .n_kv_heads = 2, .frequencies = table.frequencies};
  const auto positions = at::randint(0, 3000, {T}, at::device(at::kCUDA).dtype(at::kInt));
  const auto frequency =
      at::pow(10000.0, at::arange(0, D, 2, at::kDouble) / static_cast<double>(-D)).to(at::kFloat);
  const auto x = random({T, kHeads, D});
  auto turned = x.clone(), rows = turned.view({T, kHeads * D});
  rotary_forward(rotary, positions, rows);
  const auto angle = f64(positions.to(at::kFloat).unsqueeze(1) * frequency.to(at::kCUDA));
  const auto c = angle.cos().unsqueeze(1), s = angle.sin().unsqueeze(1);
  const auto first = f64(x).narrow(2, 0, D / 2), second = f64(x).narrow(2, D / 2, D / 2);
  const auto exact = at::cat({first * c - second * s, second * c + first * s}, 2);
  expect_close(turned.narrow(1, 0, kTurned), exact.narrow(1, 0, kTurned), "turned");
  EXPECT_TRUE(at::equal(turned.narrow(1, kTurned, kHeads - kTurned),
                        x.narrow(1, kTurned, kHeads - kTurned)));
  rotary_backward(rotary, positions, rows);
  expect_close(turned, f64(x), "there and back", 2);
}

TEST_P(Decoder, RotaryOfAPartAndOfNeighbours) {
  const auto [T, D] = shape;
  const int64_t width = D / 4 * 2, n_pairs = width / 2;
  if (width == 0 || n_pairs > kRotaryPairs_max) GTEST_SKIP() << "no head has this width";
  constexpr int64_t kHeads = 7, kTurned = 5;
  const RopeTable table = rope_table({.width = width});
  const auto positions = at::randint(0, 3000, {T}, at::device(at::kCUDA).dtype(at::kInt));
  const auto frequency =
      at::from_blob(const_cast<float*>(table.frequencies.data()), {n_pairs}).to(at::kCUDA);
  const auto angle = f64(positions.to(at::kFloat).unsqueeze(1) * frequency);
  const auto c = angle.cos().unsqueeze(1), s = angle.sin().unsqueeze(1);  // (T, 1, pairs)
  for (const bool interleaved : {false, true}) {
    SCOPED_TRACE(interleaved);
    const Rotary rotary = {.n_heads = 3,
                           .n_kv_heads = 2,
                           .frequencies = table.frequencies,
                           .factor = 1.5f,
                           .interleaved = interleaved};
    const auto x = random({T, kHeads, D});
    auto turned = x.clone(), rows = turned.view({T, kHeads * D});
    rotary_forward(rotary, positions, rows);
    const auto part = f64(x).narrow(2, 0, width);
    const auto pairs = interleaved ? part.view({T, kHeads, n_pairs, 2})
                                   : part.view({T, kHeads, 2, n_pairs}).transpose(2, 3);
    const auto first = pairs.select(3, 0), second = pairs.select(3, 1);
    const auto both = at::stack({first * c - second * s, second * c + first * s}, 3) * 1.5;
    const auto exact = (interleaved ? both : both.transpose(2, 3)).reshape({T, kHeads, width});
    expect_close(turned.narrow(1, 0, kTurned).narrow(2, 0, width), exact.narrow(1, 0, kTurned),
                 "turned");
    EXPECT_TRUE(at::equal(turned.narrow(2, width, D - width), x.narrow(2, width, D - width)));
    EXPECT_TRUE(at::equal(turned.narrow(1, kTurned, kHeads - kTurned),
                          x.narrow(1, kTurned, kHeads - kTurned)));
    rotary_backward(rotary, positions, rows);
    expect_close(turned.narrow(1, 0, kTurned).narrow(2, 0, width),
                 2.25 * part.narrow(1, 0, kTurned), "there and back", 2);
  }
}

TEST_P(Decoder, SiluGateBothWays) {
  const auto [T, F] = shape;
  const auto gate_up = random({T, 2 * F}) * 3, d = random({T, F}) + 0.25;
  auto out = poisoned({T, F}), again = d.clone(), without = poisoned({T, 2 * F}),
       d_gate_up = poisoned({T, 2 * F});
  gate_forward(Activation::silu, gate_up, out);
  gate_backward(Activation::silu, d, gate_up, without, {});
  gate_backward(Activation::silu, again, gate_up, d_gate_up, again);
  const auto gate = f64(gate_up).narrow(1, 0, F), up = f64(gate_up).narrow(1, F, F);
  const auto s = at::sigmoid(gate);
  expect_close(out, gate * s * up, "out");
  expect_close(d_gate_up, at::cat({f64(d) * up * s * (1 + gate * (1 - s)), f64(d) * gate * s}, 1),
               "d_gate_up");
  EXPECT_TRUE(at::equal(again, out));
  EXPECT_TRUE(at::equal(without, d_gate_up));
}

TEST_P(Decoder, SiluOfLargeGatesIsFinite) {
  const auto [T, F] = shape;
  auto gate_up = at::ones({T, 2 * F}, options());
  gate_up.narrow(1, 0, F).fill_(-300);
  gate_up.narrow(1, 0, 1).fill_(300);
  auto out = poisoned({T, F}), d_gate_up = poisoned({T, 2 * F});
  const auto d = at::ones({T, F}, options());
  gate_forward(Activation::silu, gate_up, out);
  gate_backward(Activation::silu, d, gate_up, d_gate_up, {});
  EXPECT_TRUE(at::allclose(f64(out), at::relu(f64(gate_up).narrow(1, 0, F)), 1e-6, 1e-6));
  EXPECT_TRUE(d_gate_up.isfinite().all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Shapes, Decoder, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
