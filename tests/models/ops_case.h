#pragma once
// Helpers that the operations' tests share: random tensors, their fp64 twins for autograd, the
// dropout mask as factors, the comparison, and attention by its definition.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <optional>

#include "models/core/block.h"
#include "models/ops/activation_kind.h"
#include "models/ops/attention/attention.h"
#include "models/ops/scratch_sizes.h"
#include "simd/kernels.h"
#include "tests/models/model_runner.h"

namespace ferry::ops {

inline constexpr int64_t T = 150, W = 37;  // neither a multiple of lanes nor of row blocks
inline constexpr Dropout kSomeDropout = {.p = 0.3f, .key = 77};

struct Room {
  explicit Room(at::Device device = at::kCPU)
      : region(64 << 20, device), scratch(region.data(), region.n_bytes(), device) {}

  test::Region region;
  Scratch scratch;
};

inline at::Tensor random(at::IntArrayRef shape, double std = 1) {
  return at::randn(shape) * std;
}
inline at::Tensor leaf(const at::Tensor& x) {
  return x.to(at::kDouble).clone().requires_grad_();
}
inline at::Tensor like(const at::Tensor& x) {
  return at::full_like(x, NAN);
}

/** The mask of a dropout as a factor per element, fp64. */
inline at::Tensor factor(Dropout dropout, at::IntArrayRef shape, uint64_t first = 0) {
  at::Tensor keep = at::empty(shape, at::kByte);
  simd::dropout_mask(keep.data_ptr<uint8_t>(), keep.numel(), first, dropout.key, dropout.p);
  return keep.to(at::kDouble) / (1.0 - static_cast<double>(dropout.p));
}

inline void expect_close(const at::Tensor& ours,
                         const at::Tensor& theirs,
                         const char* what,
                         double bar = 2e-6) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  const double error = (ours.to(at::kCPU, at::kDouble) - theirs).norm().item<double>();
  const double size = theirs.norm().item<double>();
  EXPECT_LE(error, bar * std::max(size, 1e-6)) << what << " of norm " << size;
}

inline constexpr Activation kAllActivations[kActivations] = {
    Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu,
    Activation::quick_gelu};
/** An activation function as transformers has it. */
inline at::Tensor activation_of(Activation kind, const at::Tensor& x) {
  switch (kind) {
    case Activation::gelu:
      return at::gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::relu:
      return at::relu(x);
    case Activation::silu:
      return at::silu(x);
    case Activation::quick_gelu:
      return x * at::sigmoid(1.702 * x);
  }
  return {};
}

class Ops : public ::testing::Test {
 protected:
  Ops() { at::manual_seed(5); }
  Room room_;
};

/** An operation on each device against one reference, which is the CPU's in fp64. */
class OpsOnDevice : public ::testing::TestWithParam<at::DeviceType> {
 protected:
  void SetUp() override {
    if (GetParam() == at::kCUDA && !at::hasCUDA()) GTEST_SKIP() << "no CUDA GPU here";
    at::manual_seed(5);
    room_.emplace(GetParam());
  }

  /** On a CPU the tensor itself: clone what an operation overwrites. */
  static at::Tensor there(const at::Tensor& x) { return x.to(GetParam()); }
  /** fp32 with nothing in it yet. */
  static at::Tensor unwritten(at::IntArrayRef shape) {
    return at::full(shape, NAN, at::device(GetParam()));
  }
  Scratch& scratch() { return room_->scratch; }

 private:
  std::optional<Room> room_;  // once a GPU is known to be there
};

/** Attention as its definition says, in fp64; qkv64 (T, (n_heads + 2 kv heads) d). */
inline at::Tensor attention_of(const at::Tensor& qkv64,
                               const test::TestBatch& batch,
                               const Attention& attention) {
  const int64_t H = attention.n_heads, kv = attention.kv_heads(), d = qkv64.size(1) / (H + 2 * kv);
  const Dropout dropout = attention.dropout;
  std::vector<at::Tensor> parts;
  int64_t first_prob = 0;
  for (size_t s = 0; s + 1 < batch.cu_seqlens.size(); s++) {
    const int64_t at = batch.cu_seqlens[s], n = batch.cu_seqlens[s + 1] - at;
    const auto heads = [&](int64_t first, int64_t n_heads) {  // (H, n, d)
      return qkv64.narrow(0, at, n)
          .narrow(1, first * d, n_heads * d)
          .view({n, n_heads, d})
          .transpose(0, 1)
          .repeat_interleave(H / n_heads, 0);
    };
    const at::Tensor q = heads(0, H), k = heads(H, kv), v = heads(H + kv, kv);
    const double scale =
        attention.scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : attention.scale;
    at::Tensor scores = q.matmul(k.transpose(1, 2)) * scale;
    if (const double cap = attention.soft_cap; cap > 0) scores = at::tanh(scores / cap) * cap;
    const at::Tensor all = at::ones({n, n}, at::kBool);
    if (attention.causal) scores = scores.masked_fill(all.triu(1), -INFINITY);
    if (attention.window > 0) scores = scores.masked_fill(all.tril(-attention.window), -INFINITY);
    at::Tensor p = at::softmax(scores, -1);
    if (dropout.p > 0) p = p * factor(dropout, {H, n, n}, static_cast<uint64_t>(first_prob));
    parts.push_back(p.matmul(v).transpose(0, 1).reshape({n, H * d}));
    first_prob += (H * n * n + kProbsAlignment_elements - 1) / kProbsAlignment_elements *
                  kProbsAlignment_elements;
  }
  return at::cat(parts);
}

struct AttentionRun {
  at::Tensor context, d_qkv, d_bias;
};
/** Runs the CPU's attention. */
inline AttentionRun run_attention(const at::Tensor& qkv,
                                  const at::Tensor& dy,
                                  const test::TestBatch& batch,
                                  const Attention& attention,
                                  Room& room) {
  const auto specs = attention_saved(AttentionBackend::cpu_math, DType::f32, batch.tensors.shape,
                                     attention.n_heads);
  std::vector<at::Tensor> state = {at::full(specs[0].shape, NAN, qkv.options())};
  AttentionRun run = {like(dy), like(qkv), at::full({qkv.size(1)}, NAN, qkv.options())};
  attention_forward(attention, batch.tensors, qkv, state, run.context, room.scratch);
  attention_backward(attention, batch.tensors, dy, qkv, state, run.context, run.d_qkv, run.d_bias,
                     room.scratch);
  return run;
}

}  // namespace ferry::ops
