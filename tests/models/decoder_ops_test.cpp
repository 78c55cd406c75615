// The operations that decoders add, against autograd in fp64 on the same numbers: RMSNorm, residual
// sums, rotary positions, causal attention with grouped heads.

#include "models/core/block.h"
#include "models/ops/attention/cached_attention.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/gate/gate.h"
#include "models/ops/head_norm/head_norm.h"
#include "models/ops/rms_norm/rms_norm.h"
#include "models/ops/rotary/rope_frequencies.h"
#include "models/ops/rotary/rotary.h"
#include "tests/models/ops_case.h"

namespace ferry::ops {
namespace {

constexpr float kEps = 1e-5f;

at::Tensor rms_norm_of(const at::Tensor& z, const at::Tensor& weight) {
  return z * at::rsqrt((z * z).mean(1, true) + static_cast<double>(kEps)) * weight;
}

TEST_P(OpsOnDevice, ResidualRmsNorm) {
  for (const float offset : {0.0f, 1.0f}) {
    for (const bool has_residual : {false, true}) {
      const at::Tensor a = random({T, W}) + 0.5, w = random({W}), dy = random({T, W});
      const at::Tensor x = has_residual ? random({T, W}) : at::Tensor();
      const at::Tensor sum64 = leaf(has_residual ? a + x : a), w64 = leaf(w);
      const at::Tensor y64 = rms_norm_of(sum64, w64 + static_cast<double>(offset));
      y64.backward(dy.to(at::kDouble));

      const at::Tensor residual = has_residual ? there(x) : at::Tensor(), weight = there(w);
      const at::Tensor z = has_residual ? unwritten({T, W}) : at::Tensor();
      at::Tensor y = unwritten({T, W}), rstd = unwritten({T}), again = unwritten({T, W});
      residual_rms_norm_forward(there(a), residual, weight, kEps, z, rstd, y, offset);
      const at::Tensor sum = has_residual ? z : there(a);
      if (has_residual) {
        EXPECT_TRUE(at::equal(z.cpu(), a + x));
      }
      expect_close(y, y64.detach(), "y");
      rms_norm_apply(sum, weight, rstd, again, offset);
      EXPECT_TRUE(at::equal(y, again));

      at::Tensor dz = there(dy).clone(), dw = unwritten({W});
      residual_rms_norm_backward(dz, sum, weight, rstd, {}, dz, dw, scratch(), offset);
      expect_close(dz, sum64.grad(), "dz");
      expect_close(dw, w64.grad(), "dweight");
      const at::Tensor other = random({T, W}), expected = sum64.grad() + other;
      at::Tensor d_sum = there(other).clone();
      residual_rms_norm_backward(there(dy), sum, weight, rstd, d_sum, d_sum, dw, scratch(), offset);
      expect_close(d_sum, expected, "dz + d_sum");
      expect_close(dw, w64.grad(), "dweight");

      at::Tensor in_place = there(a).clone();
      residual_rms_norm_forward(in_place, residual, weight, kEps, z, rstd, in_place, offset);
      EXPECT_TRUE(at::equal(in_place, y));
    }
  }
}

TEST_F(Ops, DropoutResidual) {
  for (const Dropout dropout : {Dropout{}, kSomeDropout}) {
    const at::Tensor a = random({T, W}), b = random({W}), x = random({T, W}), dy = random({T, W});
    const at::Tensor factors =
        dropout.p > 0 ? factor(dropout, {T, W}) : at::ones({T, W}, at::kDouble);
    at::Tensor y = a.clone(), without_bias = like(a), db = like(b);
    dropout_residual_forward(y, b, x, dropout, y);
    dropout_residual_forward(a, {}, x, dropout, without_bias);
    expect_close(y, (a.to(at::kDouble) + b) * factors + x, "y");
    expect_close(without_bias, a.to(at::kDouble) * factors + x, "y without bias");
    const at::Tensor da = dropout.p > 0 ? like(a) : at::Tensor();
    dropout_residual_backward(dy, dropout, da, db, room_.scratch);
    if (dropout.p > 0) {
      expect_close(da, dy * factors, "da");
    }
    expect_close(db, (dy * factors).sum(0), "dbias");
  }
}

/** Hugging Face's forms: x * cos + rotate_half(x) * sin with each angle twice in a row, or where
 * pairs are neighbours twice in succession (GPT-J's rotate_every_two). The columns past 2 * pairs
 * stay. heads (T, H, d), frequency (pairs) in fp64. */
at::Tensor rotated(const at::Tensor& heads,
                   const at::Tensor& positions,
                   const at::Tensor& frequency,
                   double factor,
                   bool interleaved) {
  const int64_t n = 2 * frequency.size(0), d = heads.size(2);
  const at::Tensor angle = positions.to(at::kDouble).unsqueeze(1) * frequency.unsqueeze(0);
  const at::Tensor x = heads.narrow(2, 0, n);
  at::Tensor twice, half;
  if (interleaved) {
    twice = angle.repeat_interleave(2, 1).unsqueeze(1);
    const auto pairs = x.reshape({x.size(0), x.size(1), n / 2, 2});
    half = at::stack({-pairs.select(3, 1), pairs.select(3, 0)}, 3).flatten(2);
  } else {
    twice = at::cat({angle, angle}, 1).unsqueeze(1);  // (T, 1, n)
    half = at::cat({-x.narrow(2, n / 2, n / 2), x.narrow(2, 0, n / 2)}, 2);
  }
  const at::Tensor turned = (x * twice.cos() + half * twice.sin()) * factor;
  return at::cat({turned, heads.narrow(2, n, d - n)}, 2);
}

struct RotaryCase {
  double theta = 10000;
  int64_t width = 22, rotated = 22;
  double factor = 1;
  bool interleaved = false;
};

TEST_P(OpsOnDevice, RotaryPositions) {
  constexpr int64_t kHeads = 6, kKvHeads = 2, kAll = kHeads + 2 * kKvHeads;
  const at::Tensor positions = at::randint(0, 60, {T}, at::kInt);
  const RotaryCase cases[] = {{},
                              {.theta = 500000},
                              {.rotated = 6},
                              {.rotated = 10, .factor = 1.2, .interleaved = true},
                              {.width = 64, .rotated = 16, .factor = 1.2},
                              {.width = 64, .rotated = 24},
                              {.width = 64, .rotated = 16, .interleaved = true},
                              {.width = 64, .rotated = 64, .interleaved = true}};
  for (const RotaryCase& its : cases) {
    SCOPED_TRACE(std::to_string(its.rotated) + " of " + std::to_string(its.width) +
                 (its.interleaved ? ", interleaved" : ""));
    const RopeTable table = rope_table({.theta = its.theta, .width = its.rotated});
    const Rotary rotary = {.n_heads = kHeads,
                           .n_kv_heads = kKvHeads,
                           .frequencies = table.frequencies,
                           .factor = static_cast<float>(its.factor),
                           .interleaved = its.interleaved};
    const at::Tensor frequency = at::pow(
        its.theta, at::arange(0, its.rotated, 2, at::kDouble) / static_cast<double>(-its.rotated));
    const at::Tensor qkv = random({T, kAll * its.width}), dy = random({T, kAll * its.width});
    const at::Tensor qkv64 = leaf(qkv), heads = qkv64.view({T, kAll, its.width});
    const int64_t n_turned = kHeads + kKvHeads;
    const at::Tensor expected = at::cat(
        {rotated(heads.narrow(1, 0, n_turned), positions, frequency, its.factor, its.interleaved),
         heads.narrow(1, n_turned, kKvHeads)},
        1);
    expected.backward(dy.view({T, kAll, its.width}).to(at::kDouble));
    at::Tensor turned = there(qkv).clone(), d = there(dy).clone();
    rotary_forward(rotary, there(positions), turned);
    rotary_backward(rotary, there(positions), d);
    expect_close(turned, expected.detach().view(turned.sizes()), "qkv");
    expect_close(d, qkv64.grad(), "d_qkv");
    if (its.factor != 1) continue;
    rotary_backward(rotary, there(positions), turned);
    expect_close(turned, qkv.to(at::kDouble), "there and back");
  }
}

/** Tokens of long texts are turned by frequencies of their own, in the same batch. */
TEST_P(OpsOnDevice, RotaryPositionsOfLongTexts) {
  constexpr int64_t kHeads = 3, kKvHeads = 1, kAll = kHeads + 2 * kKvHeads, kWidth = 64;
  const RopeTable table = rope_table({.scaling = RopeScaling::longrope,
                                      .width = 16,
                                      .factor = 4,
                                      .original_positions = 32,
                                      .short_factor = {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7},
                                      .long_factor = {2, 3, 4, 5, 6, 7, 8, 9}});
  EXPECT_EQ(table.long_from, 32);
  const at::Tensor positions = at::arange(0, T, at::kInt).remainder(40);
  const at::Tensor is_long = at::arange(0, T).remainder(3).eq(0);
  const at::Tensor marked = positions + is_long.to(at::kInt) * kLongPosition;
  const at::Tensor qkv = random({T, kAll * kWidth});
  const auto turned_by = [&](std::span<const float> frequencies,
                             std::span<const float> long_frequencies, const at::Tensor& ids) {
    const Rotary rotary = {.n_heads = kHeads,
                           .n_kv_heads = kKvHeads,
                           .frequencies = frequencies,
                           .long_frequencies = long_frequencies,
                           .factor = table.factor};
    at::Tensor turned = there(qkv).clone();
    rotary_forward(rotary, there(ids), turned);
    at::Tensor back = turned.clone();
    rotary_backward(rotary, there(ids), back);
    return std::pair{turned.cpu(), back.cpu()};
  };
  const auto both = turned_by(table.frequencies, table.long_frequencies, marked);
  const auto of_short = turned_by(table.frequencies, {}, positions);
  const auto of_long = turned_by(table.long_frequencies, {}, positions);
  EXPECT_FALSE(at::equal(of_short.first, of_long.first));
  EXPECT_TRUE(
      at::equal(both.first, at::where(is_long.unsqueeze(1), of_long.first, of_short.first)));
  EXPECT_TRUE(
      at::equal(both.second, at::where(is_long.unsqueeze(1), of_long.second, of_short.second)));
}

TEST_P(OpsOnDevice, RotaryAnglesFarOut) {
  // The angle is a product of fp32, as Hugging Face computes it; its sine is exact then, on a GPU
  // to two units in the last place.
  const int64_t d = 128, n = 200;
  const at::Tensor positions = at::arange(131072 - n, 131072, at::kInt);
  at::Tensor qkv = there(at::zeros({n, 3 * d}));
  qkv.narrow(1, 0, d / 2).fill_(1);
  const RopeTable table = rope_table({.width = d});
  rotary_forward({.n_heads = 1, .n_kv_heads = 1, .frequencies = table.frequencies},
                 there(positions), qkv);
  const at::Tensor turned = qkv.cpu();
  const at::Tensor frequency =
      at::pow(10000.0, at::arange(0, d, 2, at::kDouble) / static_cast<double>(-d)).to(at::kFloat);
  const at::Tensor angle =
      (positions.to(at::kFloat).unsqueeze(1) * frequency.unsqueeze(0)).to(at::kDouble);
  const double bar = GetParam() == at::kCPU ? 7e-8 : 1.3e-7;
  EXPECT_LT((turned.narrow(1, 0, d / 2) - angle.cos()).abs().max().item<double>(), bar);
  EXPECT_LT((turned.narrow(1, d / 2, d / 2) - angle.sin()).abs().max().item<double>(), bar);
}

TEST_P(OpsOnDevice, HeadNorm) {
  constexpr int64_t kHeads = 6, kKvHeads = 2, kAll = kHeads + 2 * kKvHeads;
  for (const auto& [width, offset] :
       {std::pair{22, 0.0f}, std::pair{64, 1.0f}, std::pair{256, 1.0f}, std::pair{128, 0.0f}}) {
    SCOPED_TRACE("heads of " + std::to_string(width));
    const HeadNorm norm = {
        .n_heads = kHeads, .n_kv_heads = kKvHeads, .eps = kEps, .weight_offset = offset};
    const at::Tensor x = random({T, kAll * width}), dy = random({T, kAll * width}),
                     q = random({width}), k = random({width});
    const at::Tensor x64 = leaf(x), q64 = leaf(q), k64 = leaf(k);
    const at::Tensor heads = x64.view({T, kAll, width});
    const auto normed = [&](int64_t first, int64_t n, const at::Tensor& weight) {
      return rms_norm_of(heads.narrow(1, first, n).reshape({T * n, width}),
                         weight + static_cast<double>(offset))
          .view({T, n, width});
    };
    const at::Tensor expected = at::cat({normed(0, kHeads, q64), normed(kHeads, kKvHeads, k64),
                                         heads.narrow(1, kHeads + kKvHeads, kKvHeads)},
                                        1)
                                    .view({T, kAll * width});
    expected.backward(dy.to(at::kDouble));
    at::Tensor y = unwritten({T, kAll * width}), rstd = unwritten({T, kHeads + kKvHeads}),
               d = there(dy).clone(), dq = unwritten({width}), dk = unwritten({width});
    head_norm_forward(norm, there(x), there(q), there(k), rstd, y);
    head_norm_backward(norm, there(x), there(q), there(k), rstd, d, dq, dk, scratch());
    expect_close(y, expected.detach(), "y");
    expect_close(d, x64.grad(), "dx");
    expect_close(dq, q64.grad(), "dq_weight");
    expect_close(dk, k64.grad(), "dk_weight");

    for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
      const double bar = type == at::kHalf ? 1e-3 : 8e-3;
      at::Tensor narrow_y = there(x.to(type)).clone(), narrow_d = there(dy.to(type)).clone();
      at::Tensor dq16 = like(there(q.to(type))), dk16 = like(dq16);
      const at::Tensor narrow_x = narrow_y.clone();
      head_norm_forward(norm, narrow_x, there(q.to(type)), there(k.to(type)), rstd, narrow_y);
      head_norm_backward(norm, narrow_x, there(q.to(type)), there(k.to(type)), rstd, narrow_d, dq16,
                         dk16, scratch());
      expect_close(narrow_y, expected.detach(), "y in 16 bits", bar);
      expect_close(narrow_d, x64.grad(), "dx in 16 bits", bar);
      expect_close(dq16, q64.grad(), "dq_weight in 16 bits", bar);
    }
  }
}

std::vector<Attention> decoders_attentions() {
  std::vector<Attention> all;
  for (const Dropout dropout : {Dropout{}, kSomeDropout}) {
    for (const bool causal : {false, true}) {
      for (const int64_t kv : {1, 2, 6})
        all.push_back({.n_heads = 6, .dropout = dropout, .n_kv_heads = kv, .causal = causal});
    }
    all.push_back({.n_heads = 6, .dropout = dropout, .n_kv_heads = 2, .scale = 0.7});
    for (const bool causal : {false, true})
      all.push_back({.n_heads = 6,
                     .dropout = dropout,
                     .n_kv_heads = 2,
                     .causal = causal,
                     .scale = 0.7,
                     .window = causal ? 17 : 0,
                     .soft_cap = 2});
    for (const int64_t window : {1, 17, 100, 200, 1000})
      all.push_back({.n_heads = 6,
                     .dropout = dropout,
                     .n_kv_heads = 2,
                     .causal = true,
                     .scale = 0.7,
                     .window = window});
  }
  return all;
}

std::string name_of(const Attention& its) {
  return std::string(its.causal ? "causal, " : "") + std::to_string(its.n_kv_heads) + " kv heads" +
         (its.soft_cap > 0 ? ", capped" : "") +
         (its.window > 0 ? ", window " + std::to_string(its.window) : "") +
         (its.dropout.p > 0 ? ", dropout" : "");
}

TEST_F(Ops, CausalAndGroupedAttention) {
  // 200 and 131 need several blocks of rows; 1 is a softmax over itself.
  const test::TestBatch batch({200, 1, 17, 131}, 0, 100, 3);
  const int64_t tokens = batch.tensors.shape.tokens, d = 10;
  for (const Attention& attention : decoders_attentions()) {
    SCOPED_TRACE(name_of(attention));
    const at::Tensor qkv = random({tokens, (6 + 2 * attention.n_kv_heads) * d}),
                     dy = random({tokens, 6 * d});
    const at::Tensor qkv64 = leaf(qkv), expected = attention_of(qkv64, batch, attention);
    expected.backward(dy.to(at::kDouble));
    const AttentionRun run = run_attention(qkv, dy, batch, attention, room_);
    expect_close(run.context, expected.detach(), "context");
    expect_close(run.d_qkv, qkv64.grad(), "d_qkv");
    expect_close(run.d_bias, qkv64.grad().sum(0), "d_bias");
  }
}

/** Some of each sequence's tokens, and the batch that a generation makes of them. */
struct Continued {
  Continued(const test::TestBatch& whole,
            std::span<const int32_t> begins,
            std::span<const int32_t> ends)
      : lengths(begins.begin(), begins.end()) {
    for (size_t s = 0; s < begins.size(); ++s) {
      rows.push_back(at::arange(whole.cu_seqlens[s] + begins[s], whole.cu_seqlens[s] + ends[s]));
      cu_seqlens.push_back(cu_seqlens.back() + ends[s] - begins[s]);
      places.push_back(static_cast<int32_t>(begins.size() - 1 - s));
    }
    tensors.cu_seqlens_host = cu_seqlens;
    tensors.cache_places = places;
    tensors.cache_lengths = lengths;
  }
  at::Tensor of(const at::Tensor& whole) const {
    return whole.index_select(0, at::cat(rows).to(whole.device()));
  }

  std::vector<at::Tensor> rows;
  std::vector<int32_t> cu_seqlens = {0}, places, lengths;
  BatchTensors tensors;
};

TEST_P(OpsOnDevice, CachedAttention) {
  const test::TestBatch batch({200, 1, 17, 131}, 0, 100, 3);
  const int64_t tokens = batch.tensors.shape.tokens, d = 10;
  const std::array<int32_t, 4> none{}, begins = {199, 0, 10, 128}, ends = {200, 1, 17, 131};
  const Continued before(batch, none, begins), after(batch, begins, ends);
  for (const Attention& attention : decoders_attentions()) {
    if (!attention.causal || attention.dropout.p > 0) continue;
    for (const auto& [type, bar] : {std::pair{at::kFloat, 2e-6}, std::pair{at::kBFloat16, 2e-2}}) {
      SCOPED_TRACE(name_of(attention));
      const at::Tensor qkv = random({tokens, (6 + 2 * attention.n_kv_heads) * d}).to(type);
      const at::Tensor expected = after.of(attention_of(qkv.to(at::kDouble), batch, attention));
      const auto kept = [&] {
        return at::full({4, attention.n_kv_heads, 200, d}, NAN, at::device(GetParam()).dtype(type));
      };
      KvCache cache = {kept(), kept()};
      const at::Tensor old_qkv = there(before.of(qkv)), new_qkv = there(after.of(qkv));
      append_to_cache(attention, before.tensors, old_qkv, cache);
      append_to_cache(attention, after.tensors, new_qkv, cache);
      at::Tensor context = there(at::full({new_qkv.size(0), 6 * d}, NAN, type));
      ASSERT_TRUE(has_cached_tokens(after.tensors));
      cached_attention(attention, after.tensors, new_qkv, cache, context, scratch());
      expect_close(context, expected, "context", bar);
    }
  }
}

TEST_F(Ops, CausalAttentionIn16Bits) {
  const test::TestBatch batch({200, 9}, 0, 100, 3);
  const Attention attention = {
      .n_heads = 4, .dropout = kSomeDropout, .n_kv_heads = 2, .causal = true};
  const at::Tensor wide = random({209, 8 * 8}), dy = random({209, 32});
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor qkv = wide.to(type), qkv64 = leaf(qkv.to(at::kFloat));
    const at::Tensor expected = attention_of(qkv64, batch, attention);
    expected.backward(dy.to(type).to(at::kDouble));
    const AttentionRun run = run_attention(qkv, dy.to(type), batch, attention, room_);
    expect_close(run.context, expected.detach(), "context", 1e-2);
    expect_close(run.d_qkv, qkv64.grad(), "d_qkv", 1e-2);
  }
}

TEST_F(Ops, ATokenSeesNothingAfterIt) {
  const test::TestBatch batch({70, 80}, 0, 100, 3);
  const Attention attention = {.n_heads = 2, .n_kv_heads = 1, .causal = true};
  const at::Tensor dy = random({T, 16});
  at::Tensor qkv = random({T, 32});
  const at::Tensor before = run_attention(qkv, dy, batch, attention, room_).context.clone();
  qkv.narrow(0, 40, 30).normal_();
  const at::Tensor after = run_attention(qkv, dy, batch, attention, room_).context;
  EXPECT_TRUE(at::equal(before.narrow(0, 0, 40), after.narrow(0, 0, 40)));
  EXPECT_TRUE(at::equal(before.narrow(0, 70, 80), after.narrow(0, 70, 80)));
  EXPECT_FALSE(at::equal(before.narrow(0, 40, 30), after.narrow(0, 40, 30)));
}

TEST_F(Ops, ThreadsChangeNoBitOfDecoders) {
  const test::TestBatch batch({90, 31, 29}, 0, 50, 3);
  const at::Tensor a = random({T, W}), x = random({T, W}), w = random({W}), dy = random({T, W});
  const at::Tensor qkv = random({T, 8 * 10}), d_context = random({T, 40});
  const at::Tensor gate_up = random({T, 2 * W});
  const RopeTable table = rope_table({.width = 10});
  const auto run = [&] {
    at::Tensor z = like(a), y = like(a), rstd = at::full({T}, NAN), dz = like(a), dw = like(w);
    at::Tensor da = like(a), db = like(w), turned = qkv.clone(), d_gate_up = like(gate_up);
    residual_rms_norm_forward(a, x, w, kEps, z, rstd, y);
    residual_rms_norm_backward(dy, z, w, rstd, a, dz, dw, room_.scratch);
    dropout_residual_backward(dy, kSomeDropout, da, db, room_.scratch);
    rotary_forward({.n_heads = 4, .n_kv_heads = 2, .frequencies = table.frequencies},
                   batch.tensors.position_ids, turned);
    gate_backward(Activation::silu, dy, gate_up, d_gate_up, {});
    at::Tensor normed = like(qkv), d_qkv = qkv.clone(), dq = at::full({10}, NAN), dk = like(dq);
    at::Tensor head_rstd = at::full({T, 6}, NAN);
    const HeadNorm norm = {.n_heads = 4, .n_kv_heads = 2, .eps = kEps};
    const at::Tensor weight = w.narrow(0, 0, 10);
    head_norm_forward(norm, qkv, weight, weight, head_rstd, normed);
    head_norm_backward(norm, qkv, weight, weight, head_rstd, d_qkv, dq, dk, room_.scratch);
    const AttentionRun attention = run_attention(
        turned, d_context, batch,
        {.n_heads = 4, .dropout = kSomeDropout, .n_kv_heads = 2, .causal = true}, room_);
    return std::vector<at::Tensor>{z,
                                   y,
                                   rstd,
                                   dz,
                                   dw,
                                   da,
                                   db,
                                   turned,
                                   d_gate_up,
                                   normed,
                                   d_qkv,
                                   dq,
                                   dk,
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

TEST_F(Ops, DecodersIn16BitsAreTheRoundedOnes) {
  // fp32 arithmetic on the rounded values, rounded once.
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor a = random({T, W}).to(type), x = random({T, W}).to(type),
                     w = random({W}).to(type), dy = random({T, W}).to(type);
    at::Tensor z = like(a), y = like(a), dz = like(a), dw = like(w);
    at::Tensor rstd = at::full({T}, NAN), wide_rstd = rstd.clone();
    residual_rms_norm_forward(a, x, w, kEps, z, rstd, y);
    EXPECT_TRUE(at::equal(z, (a.to(at::kFloat) + x.to(at::kFloat)).to(type)));
    const at::Tensor sum = z.to(at::kFloat), wide_w = w.to(at::kFloat), wide_dy = dy.to(at::kFloat);
    at::Tensor wide_y = like(sum), wide_dz = like(sum), wide_dw = like(wide_w);
    residual_rms_norm_forward(sum, {}, wide_w, kEps, {}, wide_rstd, wide_y);
    EXPECT_TRUE(at::equal(y, wide_y.to(type)));
    EXPECT_TRUE(at::equal(rstd, wide_rstd));
    residual_rms_norm_backward(dy, z, w, rstd, x, dz, dw, room_.scratch);
    residual_rms_norm_backward(wide_dy, sum, wide_w, rstd, x.to(at::kFloat), wide_dz, wide_dw,
                               room_.scratch);
    EXPECT_TRUE(at::equal(dz, wide_dz.to(type)));
    EXPECT_TRUE(at::equal(dw, wide_dw.to(type)));

    const at::Tensor positions = at::arange(T, at::kInt), gate_up = random({T, 2 * W}).to(type);
    for (const int64_t width : {8, 6}) {
      for (const bool interleaved : {false, true}) {
        const RopeTable table = rope_table({.width = width});
        const Rotary rotary = {.n_heads = 2,
                               .n_kv_heads = 1,
                               .frequencies = table.frequencies,
                               .interleaved = interleaved};
        at::Tensor qkv = random({T, 4 * 8}).to(type), wide_qkv = qkv.to(at::kFloat);
        rotary_forward(rotary, positions, qkv);
        rotary_forward(rotary, positions, wide_qkv);
        EXPECT_TRUE(at::equal(qkv, wide_qkv.to(type)));
      }
    }
    at::Tensor out = like(a), wide_out = like(sum);
    gate_forward(Activation::silu, gate_up, out);
    gate_forward(Activation::silu, gate_up.to(at::kFloat), wide_out);
    EXPECT_TRUE(at::equal(out, wide_out.to(type)));
  }
}

}  // namespace
}  // namespace ferry::ops
