// Every layer operation against autograd in fp64 on the same numbers and the same dropout masks
// (losses_test.cpp has the losses, decoder_ops_test.cpp what decoders add); and what holds of all
// of them: no dependence on the thread count, 16-bit types close to fp32.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "models/core/block.h"
#include "models/ops/activation/activation.h"
#include "models/ops/attention/attention.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/embedding/embedding.h"
#include "models/ops/gate/gate.h"
#include "models/ops/linear/linear.h"
#include "models/ops/norm/norm.h"
#include "models/ops/norm/norm_params.h"
#include "models/ops/rows/rows.h"
#include "models/ops/scratch_sizes.h"
#include "tests/models/ops_case.h"

namespace ferry::ops {
namespace {

TEST_F(Ops, Linear) {
  const at::Tensor x = random({T, W}), w = random({53, W}), b = random({53}), dy = random({T, 53});
  const at::Tensor x64 = leaf(x), w64 = leaf(w), b64 = leaf(b);
  const at::Tensor y64 = at::addmm(b64, x64, w64.t());
  y64.backward(dy.to(at::kDouble));
  at::Tensor y = at::full({T, 53}, NAN), dx = like(x), dw = like(w), db = like(b);
  linear_forward(x, w, b, y);
  linear_backward_input(dy, w, dx);
  linear_backward_weight(dy, x, dw);
  column_sum(dy, db, room_.scratch);
  expect_close(y, y64.detach(), "y");
  expect_close(dx, x64.grad(), "dx");
  expect_close(dw, w64.grad(), "dw");
  expect_close(db, b64.grad(), "db");
  const at::Tensor residual = random({T, W});
  linear_backward_input_add(dy, w, residual, dx);
  expect_close(dx, x64.grad() + residual, "dx + residual");
  const at::Tensor base = random({T, 53});
  at::Tensor sum = base.clone();
  linear_forward_add(x, w, sum, sum);
  expect_close(sum, y64.detach() - b + base, "x w + residual");

  constexpr float kFactor = 0.22f;
  at::Tensor wide = at::full({T, 53}, NAN), without = like(wide);
  linear_forward(x, w, b, wide, kFactor);
  linear_forward(x, w, {}, without, kFactor);
  linear_backward_weight(dy, x, dw, kFactor);
  expect_close(wide, y64.detach() * kFactor, "factor * y");
  expect_close(without, (y64.detach() - b) * kFactor, "factor * x w");
  expect_close(dw, w64.grad() * kFactor, "factor * dw");
  linear_forward_add(x, w, base, wide, kFactor);
  linear_backward_input_add(dy, w, residual, dx, kFactor);
  expect_close(wide, (y64.detach() - b) * kFactor + base, "factor * x w + residual");
  expect_close(dx, x64.grad() * kFactor + residual, "factor * dx + residual");
  dx.fill_(NAN);
  linear_backward_input(dy, w, dx, kFactor);
  expect_close(dx, x64.grad() * kFactor, "factor * dx");
}

TEST_P(OpsOnDevice, Activations) {
  for (const Activation kind : kAllActivations) {
    for (const bool has_bias : {false, true}) {
      SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + (has_bias ? ", bias" : ""));
      const at::Tensor a = random({T, W}, 2), b = random({W}), dg = random({T, W});
      const at::Tensor a64 = leaf(a), b64 = leaf(b);
      const at::Tensor g64 = activation_of(kind, has_bias ? a64 + b64 : a64);
      g64.backward(dg.to(at::kDouble));
      const at::Tensor bias = has_bias ? there(b) : at::Tensor();
      at::Tensor h = there(a).clone(), apart = unwritten({T, W}), g = unwritten({T, W}),
                 g_apart = unwritten({T, W}), again = unwritten({T, W}), dh = there(dg).clone(),
                 db = has_bias ? unwritten({W}) : at::Tensor();
      activation_forward(kind, h, bias, h, g);
      activation_forward(kind, there(a), bias, apart, g_apart);
      activation_backward(kind, dh, h, dh, db, again, scratch());
      expect_close(g, g64.detach(), "g");
      expect_close(dh, a64.grad(), "dh");
      if (has_bias) expect_close(db, b64.grad(), "db");
      EXPECT_TRUE(at::equal(g, again));
      EXPECT_TRUE(at::equal(h, apart));
      EXPECT_TRUE(at::equal(g, g_apart));
    }
  }
}

TEST_P(OpsOnDevice, Gates) {
  for (const Activation kind : kAllActivations) {
    SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)));
    const at::Tensor gate_up = random({T, 2 * W}, 3), d = random({T, W});
    const at::Tensor in64 = leaf(gate_up);
    const at::Tensor out64 = activation_of(kind, in64.narrow(1, 0, W)) * in64.narrow(1, W, W);
    out64.backward(d.to(at::kDouble));
    at::Tensor out = unwritten({T, W}), again = there(d).clone(), d_gate_up = unwritten({T, 2 * W}),
               without = unwritten({T, 2 * W});
    gate_forward(kind, there(gate_up), out);
    gate_backward(kind, there(d), there(gate_up), without, {});
    gate_backward(kind, again, there(gate_up), d_gate_up, again);
    expect_close(out, out64.detach(), "out");
    expect_close(d_gate_up, in64.grad(), "d_gate_up");
    EXPECT_TRUE(at::equal(out, again));
    EXPECT_TRUE(at::equal(d_gate_up, without));
  }
}

TEST_F(Ops, DropoutResidualNorm) {
  for (const Dropout dropout : {Dropout{}, kSomeDropout}) {
    const at::Tensor a = random({T, W}), b = random({W}), x = random({T, W}), dy = random({T, W});
    const NormParams norm = {random({W}), random({W})};
    const at::Tensor a64 = leaf(a), b64 = leaf(b), x64 = leaf(x), g64 = leaf(norm.weight),
                     s64 = leaf(norm.bias);
    at::Tensor dropped = a64 + b64;
    if (dropout.p > 0) dropped = dropped * factor(dropout, {T, W});
    const at::Tensor y64 = at::layer_norm(dropped + x64, {W}, g64, s64, 1e-5);
    y64.backward(dy.to(at::kDouble));

    at::Tensor z = a.clone(), y = like(a), dz = dy.clone(), db = like(b);
    NormState state = {at::full({T}, NAN), at::full({T}, NAN)};
    dropout_residual_norm_forward(z, b, x, norm, 1e-5f, dropout, z, state, y);
    expect_close(y, y64.detach(), "y");
    at::Tensor again = like(y);
    norm_apply(z, norm, state, again);
    EXPECT_TRUE(at::equal(y, again));
    NormParams d_norm = {like(b), like(b)};
    const at::Tensor da = dropout.p > 0 ? like(a) : at::Tensor();
    dropout_residual_norm_backward(dz, z, norm, state, {}, dropout, dz, da, d_norm, db,
                                   room_.scratch);
    expect_close(dz, x64.grad(), "dz");
    expect_close(da.defined() ? da : dz, a64.grad(), "da");
    expect_close(db, b64.grad(), "db");
    expect_close(d_norm.weight, g64.grad(), "dgamma");
    expect_close(d_norm.bias, s64.grad(), "dbeta");
    // With a gradient that reaches the sum past the norm.
    const at::Tensor d_sum = random({T, W});
    at::Tensor in_place = d_sum.clone();
    const at::Tensor factors = dropout.p > 0 ? factor(dropout, {T, W}) : at::ones({T, W});
    dropout_residual_norm_backward(dy, z, norm, state, in_place, dropout, in_place, da, d_norm, db,
                                   room_.scratch);
    expect_close(in_place, x64.grad() + d_sum, "dz + d_sum");
    expect_close(da.defined() ? da : in_place, a64.grad() + d_sum * factors, "da + d_sum");
    expect_close(d_norm.weight, g64.grad(), "dgamma");
  }
}

TEST_F(Ops, NormDropout) {
  const at::Tensor z = random({T, W}), dy = random({T, W});
  const NormParams norm = {random({W}), random({W})};
  const at::Tensor z64 = leaf(z), g64 = leaf(norm.weight), s64 = leaf(norm.bias);
  const at::Tensor y64 = at::layer_norm(z64, {W}, g64, s64, 1e-5) * factor(kSomeDropout, {T, W});
  y64.backward(dy.to(at::kDouble));
  at::Tensor y = like(z), dz = like(z);
  NormState state = {at::full({T}, NAN), at::full({T}, NAN)};
  norm_dropout_forward(z, norm, 1e-5f, kSomeDropout, state, y);
  NormParams d_norm = {like(norm.weight), like(norm.bias)};
  norm_dropout_backward(dy, z, norm, state, {}, kSomeDropout, dz, d_norm, room_.scratch);
  expect_close(y, y64.detach(), "y");
  expect_close(dz, z64.grad(), "dz");
  expect_close(d_norm.weight, g64.grad(), "dgamma");
  expect_close(d_norm.bias, s64.grad(), "dbeta");
  at::Tensor d_sum = random({T, W});
  const at::Tensor expected = z64.grad() + d_sum;
  norm_dropout_backward(dy, z, norm, state, d_sum, kSomeDropout, d_sum, d_norm, room_.scratch);
  expect_close(d_sum, expected, "dz + d_sum");
}

TEST_F(Ops, Embeddings) {
  const std::vector<int64_t> lengths = {T - 60, 60};
  const test::TestBatch batch(lengths, 0, 20, 3);  // 20 words over 150 tokens: many repeats
  const at::Tensor word = random({20, W}), position = random({T, W}), type = random({2, W});
  const at::Tensor dy = random({T, W});
  const at::Tensor word64 = leaf(word), position64 = leaf(position), type64 = leaf(type);
  const BatchTensors& b = batch.tensors;
  const at::Tensor sum64 = word64.index_select(0, b.input_ids) +
                           position64.index_select(0, b.position_ids) +
                           type64.index_select(0, b.type_ids);
  sum64.backward(dy.to(at::kDouble));
  at::Tensor sum = like(dy);
  embedding_forward(b, word, position, type, sum);
  expect_close(sum, sum64.detach(), "sum");
  at::Tensor words = like(dy), with_positions = like(dy);
  embedding_forward(b, word, {}, {}, words);
  EXPECT_TRUE(at::equal(words, word.index_select(0, b.input_ids)));
  embedding_forward(b, word, position, {}, with_positions);
  EXPECT_TRUE(at::equal(with_positions, words + position.index_select(0, b.position_ids)));
  at::Tensor d_word = like(word), d_position = like(position), d_type = like(type);
  embedding_backward(b.input_ids, dy, d_word, room_.scratch);
  embedding_backward(b.position_ids, dy, d_position, room_.scratch);
  embedding_backward(b.type_ids, dy, d_type, room_.scratch);
  expect_close(d_word, word64.grad(), "word");
  expect_close(d_position, position64.grad(), "position");
  expect_close(d_type, type64.grad(), "type");
}

TEST_P(OpsOnDevice, ScaledWordsAndPositionsAlone) {
  test::TestBatch host({T - 60, 60}, 0, 20, 3);
  const BatchTensors batch = test::on_device(GetParam(), host.tensors);
  const at::Tensor word = random({20, W}), position = random({T, W}), dy = random({T, W});
  const at::Tensor word64 = leaf(word);
  const at::Tensor sum64 = 7.5 * word64.index_select(0, host.tensors.input_ids);
  sum64.backward(dy.to(at::kDouble));
  at::Tensor sum = unwritten({T, W}), both = unwritten({T, W}), alone = unwritten({T, W}),
             d_word = unwritten({20, W});
  embedding_forward(batch, there(word), {}, {}, sum, 7.5f);
  embedding_forward(batch, there(word), there(position), {}, both, 7.5f);
  embedding_forward(batch, {}, there(position), {}, alone);
  embedding_backward(batch.input_ids, there(dy), d_word, scratch(), 7.5f);
  const at::Tensor positions = position.index_select(0, host.tensors.position_ids);
  expect_close(sum, sum64.detach(), "words");
  expect_close(both, sum64.detach() + positions, "words and positions");
  EXPECT_TRUE(at::equal(alone.cpu(), positions));
  expect_close(d_word, word64.grad(), "d_word");
}

TEST_F(Ops, RowsOutAndBack) {
  const at::Tensor x = random({T, W}), rows = at::tensor({3, 149, 0, 77}, at::kInt);
  at::Tensor out = at::full({4, W}, NAN), back = like(x);
  gather_rows(x, rows, out);
  EXPECT_TRUE(at::equal(out, x.index_select(0, rows)));
  scatter_rows(out, rows, back);
  EXPECT_TRUE(at::equal(back.index_select(0, rows), out));
  EXPECT_EQ(back.ne(0).sum().item<int64_t>(), out.ne(0).sum().item<int64_t>());
}

TEST_P(OpsOnDevice, DropoutAlone) {
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const int64_t width : {W, int64_t{64}}) {
      SCOPED_TRACE(std::string(c10::toString(type)) + ", width " + std::to_string(width));
      const at::Tensor x = random({T, width}).to(type), factors = factor(kSomeDropout, {T, width});
      const double bar = type == at::kFloat ? 2e-6 : type == at::kHalf ? 5e-4 : 4e-3;
      at::Tensor y = like(there(x)), in_place = there(x).clone();
      dropout(there(x), kSomeDropout, y);
      dropout(in_place, kSomeDropout, in_place);
      expect_close(y, x.to(at::kDouble) * factors, "y", bar);
      EXPECT_TRUE(at::equal(y.ne(0).cpu(), factors.ne(0))) << "another mask";
      EXPECT_TRUE(at::equal(in_place, y));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         OpsOnDevice,
                         ::testing::Values(at::kCPU, at::kCUDA),
                         [](const auto& param) {
                           return c10::DeviceTypeName(param.param, /*lower_case=*/true);
                         });

TEST_F(Ops, Attention) {
  // 200 and 131 need several blocks of rows; 1 is a softmax over itself.
  const test::TestBatch batch({200, 1, 17, 131}, 0, 100, 3);
  const int64_t H = 3, tokens = batch.tensors.shape.tokens, width = H * 10;
  for (const Dropout dropout : {Dropout{}, kSomeDropout}) {
    const at::Tensor qkv = random({tokens, 3 * width}), dy = random({tokens, width});
    const at::Tensor qkv64 = leaf(qkv);
    const Attention attention = {.n_heads = H, .dropout = dropout};
    const at::Tensor expected = attention_of(qkv64, batch, attention);
    expected.backward(dy.to(at::kDouble));
    const AttentionRun run = run_attention(qkv, dy, batch, attention, room_);
    expect_close(run.context, expected.detach(), "context");
    expect_close(run.d_qkv, qkv64.grad(), "d_qkv");
    expect_close(run.d_bias, qkv64.grad().sum(0), "d_bias");
  }
}

TEST_F(Ops, AttentionIn16Bits) {
  const test::TestBatch batch({50, 9}, 0, 100, 3);
  const at::Tensor wide = random({59, 3 * 32}), dy = random({59, 32});
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor qkv = wide.to(type);
    const at::Tensor qkv64 = leaf(qkv.to(at::kFloat));
    const Attention attention = {.n_heads = 4, .dropout = kSomeDropout};
    attention_of(qkv64, batch, attention).backward(dy.to(type).to(at::kDouble));
    const AttentionRun run = run_attention(qkv, dy.to(type), batch, attention, room_);
    expect_close(run.context, attention_of(qkv64, batch, attention).detach(), "context", 1e-2);
    expect_close(run.d_qkv, qkv64.grad(), "d_qkv", 1e-2);
  }
}

TEST_F(Ops, ThreadsChangeNoBit) {
  const test::TestBatch batch({90, 31, 29}, 0, 50, 3);
  const at::Tensor a = random({T, W}), b = random({W}), x = random({T, W}), dy = random({T, W});
  const at::Tensor qkv = random({T, 3 * 40}), d_context = random({T, 40});
  const NormParams norm = {random({W}), random({W})};
  const auto run = [&] {
    at::Tensor z = like(a), y = like(a), dz = like(a), da = like(a), db = like(b), g = like(a);
    at::Tensor dh = like(a), db2 = like(b), d_word = at::full({50, W}, NAN);
    NormState state = {at::full({T}, NAN), at::full({T}, NAN)};
    NormParams d_norm = {like(b), like(b)};
    dropout_residual_norm_forward(a, b, x, norm, 1e-5f, kSomeDropout, z, state, y);
    dropout_residual_norm_backward(dy, z, norm, state, {}, kSomeDropout, dz, da, d_norm, db,
                                   room_.scratch);
    activation_backward(Activation::gelu, dy, a, dh, db2, g, room_.scratch);
    embedding_backward(batch.tensors.input_ids, dy, d_word, room_.scratch);
    const AttentionRun attention =
        run_attention(qkv, d_context, batch, {.n_heads = 4, .dropout = kSomeDropout}, room_);
    return std::vector<at::Tensor>{z,
                                   y,
                                   dz,
                                   da,
                                   db,
                                   g,
                                   dh,
                                   db2,
                                   d_word,
                                   d_norm.weight,
                                   d_norm.bias,
                                   attention.context,
                                   attention.d_qkv};
  };
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const std::vector<at::Tensor> one = run();
  at::set_num_threads(3);
  const std::vector<at::Tensor> three = run();
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); i++)
    EXPECT_TRUE(at::equal(one[i], three[i])) << i;
}

TEST_F(Ops, NormIn16BitsIsTheRoundedOne) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor a = random({T, W}).to(type), b = random({W}).to(type);
    const NormParams norm = {random({W}).to(type), random({W}).to(type)};
    const NormParams wide = {norm.weight.to(at::kFloat), norm.bias.to(at::kFloat)};
    at::Tensor z = like(a), y = like(a), wide_y = at::full({T, W}, NAN), wide_z = like(wide_y);
    NormState state = {at::full({T}, NAN), at::full({T}, NAN)}, wide_state = state;
    dropout_residual_norm_forward(a, b, {}, norm, 1e-5f, kSomeDropout, z, state, y);
    // fp32 arithmetic on the rounded sum, rounded once.
    const at::Tensor sum = z.to(at::kFloat);
    dropout_residual_norm_forward(sum, {}, {}, wide, 1e-5f, {}, wide_z, wide_state, wide_y);
    EXPECT_TRUE(at::equal(y, wide_y.to(type)));
    EXPECT_TRUE(at::equal(
        z, ((a.to(at::kFloat) + b.to(at::kFloat)) * factor(kSomeDropout, {T, W}).to(at::kFloat))
               .to(type)));
  }
}

}  // namespace
}  // namespace ferry::ops
