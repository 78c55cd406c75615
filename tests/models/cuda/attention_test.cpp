// LibTorch's attention kernels as Ferry calls them: ragged sequences end to end against fp64, one
// mask in forward and backward, the same bits again, and no more memory than the tables declare.

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "models/ops/attention/attention.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {
namespace {

struct AttentionCase {
  AttentionBackend backend;
  DType type;
  int64_t head_width;
  int64_t n_kv_heads = 3;
  bool causal = false;
  int64_t window = 0;  ///< with a scale of its own
  float soft_cap = 0;
};

std::string name_of_case(const testing::TestParamInfo<AttentionCase>& info) {
  const bool is_flash = info.param.backend == AttentionBackend::flash;
  return std::string(is_flash ? "flash" : "efficient") + "_" +
         std::string(name_of(info.param.type)) + "_" + std::to_string(info.param.head_width) +
         (info.param.causal ? "_causal" : "") +
         (info.param.window > 0 ? "_window" + std::to_string(info.param.window) : "") +
         (info.param.soft_cap > 0 ? "_capped" : "") + (info.param.n_kv_heads < 3 ? "_grouped" : "");
}

class CudaAttention : public testing::TestWithParam<AttentionCase> {
 protected:
  void SetUp() override {
    if (!at::hasCUDA() || at::cuda::device_count() == 0) GTEST_SKIP() << "no CUDA GPU here";
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    at::manual_seed(5);
    const auto type = GetParam().type;
    const at::ScalarType torch_type = type == DType::f32   ? at::kFloat
                                      : type == DType::f16 ? at::kHalf
                                                           : at::kBFloat16;
    options_ = at::device(at::kCUDA).dtype(torch_type);
    width_ = kHeads * GetParam().head_width;
    for (int64_t n : kLengths)
      starts_.push_back(starts_.back() + static_cast<int32_t>(n));
    tokens_ = starts_.back();
    cu_seqlens_ = at::tensor(starts_, at::kInt).to(at::kCUDA);
    batch_.shape = {.tokens = tokens_, .n_seqs_max = kLengths.size(), .max_length = 200};
    batch_.n_seqs = batch_.n_seqs_real = kLengths.size();
    batch_.cu_seqlens = cu_seqlens_;
    batch_.cu_seqlens_host = starts_;
    kv_width_ = GetParam().n_kv_heads * GetParam().head_width;
    qkv_width_ = width_ + 2 * kv_width_;
    qkv_ = at::randn({tokens_, qkv_width_}, at::kCUDA).to(options_);
    d_context_ = at::randn({tokens_, width_}, at::kCUDA).to(options_);
  }

  struct Result {
    at::Tensor context, d_qkv, d_bias;
  };

  Result run(float p) { return run(p, qkv_); }
  Result run(float p, const at::Tensor& qkv) {
    const auto& its = GetParam();
    const Attention attention = {.backend = its.backend,
                                 .n_heads = kHeads,
                                 .dropout = {.p = p, .key = 0x1234567890abcdefull},
                                 .n_kv_heads = its.n_kv_heads,
                                 .causal = its.causal,
                                 .scale = its.window > 0 ? kScale : 0,
                                 .window = its.window,
                                 .soft_cap = its.soft_cap};
    std::vector<at::Tensor> state;
    for (const SavedSpec& spec : attention_saved(its.backend, its.type, batch_.shape, kHeads))
      state.push_back(at::zeros(
          spec.shape,
          at::device(at::kCUDA).dtype(spec.dtype == DType::i64 ? at::kLong : at::kFloat)));
    const AttentionHeads heads = {kHeads, its.n_kv_heads, its.head_width};
    const bool is_capped = its.soft_cap > 0;
    const ScratchNeed need =
        is_capped ? capped_attention_scratch(its.type, batch_.shape, heads)
                  : attention_scratch(its.backend, its.type, batch_.shape, heads,
                                      at::cuda::getCurrentDeviceProperties()->multiProcessorCount);
    const int64_t scratch_bytes =
        std::max({need.forward_bytes, need.backward_bytes,
                  stacked_bytes(column_sum_scratch_bytes(tokens_, qkv_width_))});
    const at::Tensor room = at::empty({scratch_bytes}, at::device(at::kCUDA).dtype(at::kByte));
    Scratch scratch(static_cast<std::byte*>(room.data_ptr()), scratch_bytes, room.device());
    Result result = {at::full({tokens_, width_}, NAN, options_),
                     at::full({tokens_, qkv_width_}, NAN, options_),
                     at::full({qkv_width_}, NAN, options_)};
    namespace allocator = c10::cuda::CUDACachingAllocator;
    allocator::resetPeakStats(0);
    const int64_t before = allocator::getDeviceStats(0).requested_bytes[0].current;
    attention_forward(attention, batch_, qkv, state, result.context, scratch);
    attention_backward(attention, batch_, d_context_, qkv, state, result.context, result.d_qkv,
                       result.d_bias, scratch);
    const int64_t taken = allocator::getDeviceStats(0).requested_bytes[0].peak - before;
    const int64_t declared = need.library_bytes;
    if (!is_capped) {  // its products have cuBLAS's workspace, too
      EXPECT_LE(taken, declared);
    }
    if (!is_capped &&
        its.backend == AttentionBackend::flash) {  // the other declares for sequences of one length
      EXPECT_GE(taken, declared / 3) << "the table declares far more than the kernels take";
    }
    return result;
  }

  /** Which probabilities of each sequence a run drops, (kHeads, n, n), kept ones 1: values that
   * pick some of the tokens show the probabilities of these. */
  std::vector<at::Tensor> kept(float p) {
    const int64_t d = GetParam().head_width;
    std::vector<std::vector<at::Tensor>> columns(kLengths.size());
    for (int64_t begin = 0; begin < batch_.shape.max_length; begin += d) {
      at::Tensor qkv = qkv_.clone();
      const at::Tensor picking = at::eye(d, options_).repeat({1, GetParam().n_kv_heads});
      at::Tensor values = qkv.narrow(1, width_ + kv_width_, kv_width_).zero_();
      for (size_t s = 0; s < kLengths.size(); s++)
        if (const int64_t n = std::min(d, kLengths[s] - begin); n > 0)
          values.narrow(0, starts_[s] + begin, n).copy_(picking.narrow(0, 0, n));
      const at::Tensor context = run(p, qkv).context;
      for (size_t s = 0; s < kLengths.size(); s++)
        if (const int64_t n = std::min(d, kLengths[s] - begin); n > 0)
          columns[s].push_back(context.narrow(0, starts_[s], kLengths[s])
                                   .view({kLengths[s], kHeads, d})
                                   .transpose(0, 1)
                                   .narrow(2, 0, n)
                                   .ne(0));
    }
    std::vector<at::Tensor> masks;
    for (const auto& its : columns)
      masks.push_back(at::cat(its, 2).to(at::kDouble));
    return masks;
  }

  at::Tensor expected_context(const at::Tensor& qkv,
                              const std::vector<at::Tensor>& kept = {},
                              double p = 0) const {
    std::vector<at::Tensor> parts;
    const int64_t d = GetParam().head_width;
    for (size_t s = 0; s < kLengths.size(); s++) {
      const int64_t n = kLengths[s];
      const auto heads = [&](int64_t first, int64_t n_heads) {  // (kHeads, n, d)
        return qkv.narrow(0, starts_[s], n)
            .narrow(1, first, n_heads * d)
            .view({n, n_heads, d})
            .transpose(0, 1)
            .repeat_interleave(kHeads / n_heads, 0);
      };
      const int64_t n_kv = GetParam().n_kv_heads;
      const at::Tensor q = heads(0, kHeads), k = heads(width_, n_kv),
                       v = heads(width_ + kv_width_, n_kv);
      const double cap = GetParam().soft_cap;
      const int64_t window = GetParam().window;
      at::Tensor scores =
          q.matmul(k.transpose(1, 2)) * (window > 0 ? kScale : 1 / std::sqrt(double(d)));
      if (cap > 0) scores = at::tanh(scores / cap) * cap;
      if (window > 0)
        scores = scores.masked_fill(
            at::ones({n, n}, scores.options().dtype(at::kBool)).tril(-window), -INFINITY);
      if (GetParam().causal)
        scores = scores.masked_fill(at::ones({n, n}, scores.options().dtype(at::kBool)).triu(1),
                                    -INFINITY);
      at::Tensor probabilities = at::softmax(scores, -1);
      if (!kept.empty()) probabilities = probabilities * kept[s] / (1 - p);
      parts.push_back(probabilities.matmul(v).transpose(0, 1).reshape({n, width_}));
    }
    return at::cat(parts);
  }

  void expect_close(const at::Tensor& ours, const at::Tensor& exact, const char* what) const {
    const double step = GetParam().type == DType::f32   ? 2e-6
                        : GetParam().type == DType::f16 ? 1e-3
                                                        : 8e-3;
    const double error = (ours.to(at::kDouble) - exact).norm().item<double>();
    EXPECT_LE(error, step * exact.norm().item<double>()) << what;
  }

  static constexpr double kScale = 0.2;
  static constexpr int64_t kHeads = 3;
  static constexpr std::array<int64_t, 6> kLengths = {200, 1, 17, 131, 64, 128};
  at::TensorOptions options_;
  int64_t width_ = 0, kv_width_ = 0, qkv_width_ = 0, tokens_ = 0;
  std::vector<int32_t> starts_ = {0};
  at::Tensor cu_seqlens_, qkv_, d_context_;
  BatchTensors batch_;
};

TEST_P(CudaAttention, IsThatOfItsDefinition) {
  const Result result = run(0);
  const at::Tensor qkv = qkv_.to(at::kDouble).requires_grad_();
  const at::Tensor context = expected_context(qkv);
  context.backward(d_context_.to(at::kDouble));
  expect_close(result.context, context.detach(), "context");
  expect_close(result.d_qkv, qkv.grad(), "d_qkv");
  // The sum of the keys' gradients is exactly zero, so errors are measured against all of it.
  expect_close(result.d_bias, result.d_qkv.to(at::kDouble).sum(0), "d_bias");
}

TEST_P(CudaAttention, IsThatOfItsDefinitionWithDropout) {
  constexpr float kP = 0.1f;
  const std::vector<at::Tensor> masks = kept(kP);
  const Result result = run(kP);
  const at::Tensor qkv = qkv_.to(at::kDouble).requires_grad_();
  const at::Tensor context = expected_context(qkv, masks, kP);
  context.backward(d_context_.to(at::kDouble));
  expect_close(result.context, context.detach(), "context");
  expect_close(result.d_qkv.narrow(1, 0, width_), qkv.grad().narrow(1, 0, width_), "d_q");
  expect_close(result.d_qkv.narrow(1, width_, kv_width_), qkv.grad().narrow(1, width_, kv_width_),
               "d_k");
  expect_close(result.d_qkv.narrow(1, width_ + kv_width_, kv_width_),
               qkv.grad().narrow(1, width_ + kv_width_, kv_width_), "d_v");
  // A tenth of the probabilities that there are is dropped.
  double n_kept = 0, n_all = 0;
  for (const at::Tensor& mask : masks) {
    n_kept += mask.sum().item<double>();
    const auto n = static_cast<double>(mask.size(1));
    const double hidden = std::max(n - static_cast<double>(GetParam().window), 0.0);
    n_all += kHeads * (GetParam().causal ? n * (n + 1) / 2 : n * n);
    if (GetParam().window > 0) n_all -= kHeads * hidden * (hidden + 1) / 2;
  }
  EXPECT_NEAR(n_kept / n_all, 1 - kP, 0.005);
}

TEST_P(CudaAttention, DropsTheSameInForwardAndBackward) {
  const Result result = run(0.3f), again = run(0.3f);
  // With the mask fixed, context is linear in v: <d_context, context> = <d_v, v>, with one mask.
  const auto dot = [](const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) * b.to(at::kDouble)).sum().item<double>();
  };
  const double through_context = dot(d_context_, result.context);
  const double through_values = dot(result.d_qkv.narrow(1, width_ + kv_width_, kv_width_),
                                    qkv_.narrow(1, width_ + kv_width_, kv_width_));
  const double scale = d_context_.to(at::kDouble).norm().item<double>() *
                       result.context.to(at::kDouble).norm().item<double>();
  EXPECT_NEAR(through_context / scale, through_values / scale, 2e-4);
  // The sequence of one token keeps its value whole or not at all.
  const at::Tensor alone = result.context.narrow(0, 200, 1).to(at::kFloat).view({kHeads, -1});
  const int64_t n_kv = GetParam().n_kv_heads;
  const at::Tensor value = qkv_.narrow(0, 200, 1)
                               .narrow(1, width_ + kv_width_, kv_width_)
                               .to(at::kFloat)
                               .view({n_kv, -1})
                               .repeat_interleave(kHeads / n_kv, 0);
  for (int64_t h = 0; h < kHeads; h++) {
    const double kept = alone[h].norm().item<double>() / value[h].norm().item<double>();
    EXPECT_TRUE(kept == 0 || std::abs(kept - 1 / 0.7) < 0.02) << kept;
  }
  EXPECT_FALSE(at::equal(result.context, run(0).context));
  EXPECT_TRUE(at::equal(result.context, again.context));
  EXPECT_TRUE(at::equal(result.d_qkv, again.d_qkv));
  EXPECT_TRUE(at::equal(result.d_bias, again.d_bias));
}

constexpr auto kFlash = AttentionBackend::flash, kEfficient = AttentionBackend::memory_efficient;
INSTANTIATE_TEST_SUITE_P(Backends,
                         CudaAttention,
                         testing::Values(AttentionCase{kFlash, DType::bf16, 64},
                                         AttentionCase{kFlash, DType::f16, 64},
                                         AttentionCase{kFlash, DType::bf16, 32},
                                         AttentionCase{kFlash, DType::bf16, 128},
                                         AttentionCase{kEfficient, DType::f32, 64},
                                         AttentionCase{kEfficient, DType::f32, 32},
                                         AttentionCase{kEfficient, DType::f32, 128},
                                         AttentionCase{kEfficient, DType::f16, 64},
                                         AttentionCase{kEfficient, DType::f16, 32},
                                         AttentionCase{kEfficient, DType::f16, 128},
                                         AttentionCase{kEfficient, DType::bf16, 64},
                                         AttentionCase{kFlash, DType::bf16, 128, 3, true},
                                         AttentionCase{kFlash, DType::bf16, 128, 1, true},
                                         AttentionCase{kFlash, DType::f16, 64, 1, false},
                                         AttentionCase{kFlash, DType::bf16, 40, 3, true},
                                         AttentionCase{kEfficient, DType::f32, 64, 3, true},
                                         AttentionCase{kEfficient, DType::f16, 128, 1, true},
                                         AttentionCase{kEfficient, DType::f16, 64, 1, true},
                                         AttentionCase{kFlash, DType::bf16, 64, 3, true, 50},
                                         AttentionCase{kFlash, DType::bf16, 128, 1, true, 128},
                                         AttentionCase{kFlash, DType::bf16, 256, 1, true},
                                         AttentionCase{kFlash, DType::bf16, 256, 1, true, 50},
                                         AttentionCase{kEfficient, DType::f32, 64, 3, true, 50},
                                         AttentionCase{kEfficient, DType::f32, 256, 1, true},
                                         AttentionCase{kEfficient, DType::f16, 128, 1, true, 128},
                                         AttentionCase{kEfficient, DType::f32, 64, 3, false, 0, 2},
                                         AttentionCase{kEfficient, DType::f32, 64, 1, true, 50, 2},
                                         AttentionCase{kFlash, DType::bf16, 64, 3, true, 0, 2},
                                         AttentionCase{kFlash, DType::f16, 256, 1, true, 50, 2}),
                         name_of_case);

}  // namespace
}  // namespace ferry::ops
