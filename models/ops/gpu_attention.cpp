#include "models/ops/gpu_attention.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <mutex>
#include <vector>

#include "models/ops/captured_generator.h"
#include "models/ops/cuda_kernels.h"
#include "models/ops/fused.h"
#include "models/ops/road.h"
#include "models/ops/scratch_sizes.h"
#include "src/base/error.h"

namespace ferry::ops::gpu {
namespace {

/** Queries, keys or values (part 0, 1, 2) as (T, H, head width), a view of qkv. */
at::Tensor part_of(const at::Tensor& qkv, int64_t part, int64_t n_heads) {
  const int64_t W = qkv.size(1) / 3;
  return qkv.narrow(1, part * W, W).view({qkv.size(0), n_heads, W / n_heads});
}

/** LibTorch's kernels draw from the device's default generator: key and offset fix the mask. */
void seed_generator(const at::Tensor& on, Dropout dropout, uint64_t offset = 0) {
  if (dropout.key_at) {
    FERRY_CHECK(offset == 0, "captured with an offset of {}", offset);
    return seed_captured_generator(dropout.key_at);
  }
  at::Generator generator = at::globalContext().defaultGenerator(on.device());
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(dropout.key);
  generator.set_offset(offset);
}

/** What the backwards of LibTorch give apart, (T, H, head width) each, side by side in d_qkv. */
void join(const at::Tensor& dq,
          const at::Tensor& dk,
          const at::Tensor& dv,
          at::Tensor& d_qkv,
          at::Tensor& d_bias,
          Scratch& scratch) {
  const ScratchScope scope(scratch);
  const int64_t T = d_qkv.size(0), W = d_qkv.size(1) / 3;
  FERRY_CHECK(dq.is_contiguous() && dk.is_contiguous() && dv.is_contiguous(),
              "gradients of attention are not contiguous");
  const int64_t n_bytes = column_sum_scratch_bytes(T, 3 * W, /*cuda=*/true);
  const at::Tensor sums = scratch.take({n_bytes}, at::kByte);
  cuda::join_qkv_gradients(stream_of(d_qkv), dtype_of(d_qkv), T, W, data_of(dq), data_of(dk),
                           data_of(dv), data_of(d_qkv), data_of(d_bias), data_of(sums));
}

}  // namespace

int64_t flash_length(const BatchTensors& batch) {
  return round_up(batch.shape.max_length, 128);
}

void flash_forward(const Attention& attention,
                   const BatchTensors& batch,
                   const at::Tensor& qkv,
                   std::span<at::Tensor> state,
                   at::Tensor& context) {
  if (attention.dropout.p > 0) seed_generator(qkv, attention.dropout);
  const int64_t H = attention.n_heads, length = flash_length(batch);
  const auto [out, lse, rng, unused, mask] = at::_flash_attention_forward(
      part_of(qkv, 0, H), part_of(qkv, 1, H), part_of(qkv, 2, H), batch.cu_seqlens,
      batch.cu_seqlens, length, length, attention.dropout.p, /*is_causal=*/false,
      /*return_debug_mask=*/false);
  context.copy_(out.view(context.sizes()));
  state[0].copy_(lse.view(state[0].sizes()));
  if (attention.dropout.p > 0) state[1].copy_(rng.view(at::kLong));
}

void flash_backward(const Attention& attention,
                    const BatchTensors& batch,
                    const at::Tensor& d_context,
                    const at::Tensor& qkv,
                    std::span<at::Tensor> state,
                    const at::Tensor& context,
                    at::Tensor& d_qkv,
                    at::Tensor& d_bias,
                    Scratch& scratch) {
  const int64_t H = attention.n_heads, length = flash_length(batch);
  const at::Tensor q = part_of(qkv, 0, H);
  const at::Tensor rng = state[1].view(at::kUInt64);
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      d_context.view(q.sizes()), q, part_of(qkv, 1, H), part_of(qkv, 2, H), context.view(q.sizes()),
      state[0], batch.cu_seqlens, batch.cu_seqlens, length, length, attention.dropout.p,
      /*is_causal=*/false, rng, rng);
  join(dq, dk, dv, d_qkv, d_bias, scratch);
}

namespace {

/** Sequences of one length that follow each other. */
struct Run {
  int64_t first_token = 0, n_seqs = 0, length = 0;
  int64_t first_lse = 0;       ///< element of the saved sums of exponentials
  uint64_t random_offset = 0;  ///< where its masks begin in the key's random sequence
  int64_t tokens() const { return n_seqs * length; }
};

/** LibTorch's memory-efficient kernels drop different elements in forward and backward when they
 * are given sequences of several lengths (2.11; the attention test shows it), so they get
 * rectangles: one call for each run of equal lengths. */
std::vector<Run> runs_of(const BatchTensors& batch, int64_t n_heads) {
  std::vector<Run> runs;
  const auto starts = batch.cu_seqlens_host;
  for (int64_t seq = 0; seq < batch.n_seqs; seq++) {
    const auto at = static_cast<size_t>(seq);
    const int64_t length = starts[at + 1] - starts[at];
    if (length == 0) continue;
    if (runs.empty() || runs.back().length != length) {
      Run next{.first_token = starts[at], .length = length};
      if (!runs.empty()) {
        const Run& last = runs.back();
        next.first_lse = last.first_lse + last.n_seqs * n_heads * round_up(last.length, 32);
        const int64_t n_drawn = last.n_seqs * n_heads * last.length * last.length;
        next.random_offset = last.random_offset + static_cast<uint64_t>(round_up(n_drawn, 4));
      }
      runs.push_back(next);
    }
    runs.back().n_seqs++;
  }
  return runs;
}

/** The run's rows of a (T, ...) matrix as (n_seqs, length, H, head width), from a column. */
at::Tensor rectangle(
    const at::Tensor& x, const Run& run, int64_t n_heads, int64_t width, int64_t column = 0) {
  return x.narrow(0, run.first_token, run.tokens())
      .narrow(1, column, width)
      .view({run.n_seqs, run.length, n_heads, width / n_heads});
}

at::Tensor lse_of(const at::Tensor& state, const Run& run, int64_t n_heads) {
  const int64_t rounded = round_up(run.length, 32);
  return state.narrow(0, run.first_lse, run.n_seqs * n_heads * rounded)
      .view({run.n_seqs, n_heads, rounded});
}

}  // namespace

void efficient_forward(const Attention& attention,
                       const BatchTensors& batch,
                       const at::Tensor& qkv,
                       std::span<at::Tensor> state,
                       at::Tensor& context) {
  const int64_t H = attention.n_heads, W = context.size(1);
  for (const Run& run : runs_of(batch, H)) {
    if (attention.dropout.p > 0) seed_generator(qkv, attention.dropout, run.random_offset);
    const auto [out, lse, seed, offset, max_q, max_k] = at::_efficient_attention_forward(
        rectangle(qkv, run, H, W), rectangle(qkv, run, H, W, W), rectangle(qkv, run, H, W, 2 * W),
        /*bias=*/{}, /*cu_seqlens_q=*/{}, /*cu_seqlens_k=*/{}, /*max_seqlen_q=*/{},
        /*max_seqlen_k=*/{}, attention.dropout.p, /*custom_mask_type=*/0,
        /*compute_log_sumexp=*/true);
    rectangle(context, run, H, W).copy_(out);
    lse_of(state[0], run, H).copy_(lse);
  }
}

void efficient_backward(const Attention& attention,
                        const BatchTensors& batch,
                        const at::Tensor& d_context,
                        const at::Tensor& qkv,
                        std::span<at::Tensor> state,
                        const at::Tensor& context,
                        at::Tensor& d_qkv,
                        at::Tensor& d_bias,
                        Scratch& scratch) {
  const int64_t H = attention.n_heads, W = context.size(1);
  const auto scalar = [](uint64_t value) {
    return at::scalar_tensor(static_cast<int64_t>(value), at::dtype(at::kLong));
  };
  for (const Run& run : runs_of(batch, H)) {
    const auto [dq, dk, dv, d_scores] = at::_efficient_attention_backward(
        rectangle(d_context, run, H, W), rectangle(qkv, run, H, W), rectangle(qkv, run, H, W, W),
        rectangle(qkv, run, H, W, 2 * W), /*bias=*/{}, rectangle(context, run, H, W),
        /*cu_seqlens_q=*/{}, /*cu_seqlens_k=*/{}, run.length, run.length, lse_of(state[0], run, H),
        attention.dropout.p, scalar(attention.dropout.key), scalar(run.random_offset),
        /*custom_mask_type=*/0, /*bias_requires_grad=*/false);
    rectangle(d_qkv, run, H, W).copy_(dq);
    rectangle(d_qkv, run, H, W, W).copy_(dk);
    rectangle(d_qkv, run, H, W, 2 * W).copy_(dv);
  }
  column_sum(d_qkv, d_bias, scratch);
}

}  // namespace ferry::ops::gpu
