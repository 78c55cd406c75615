#include "models/ops/attention/gpu_attention.h"
#include "models/ops/attention/join_gradients.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include <mutex>
#include <vector>

#include "models/ops/captures/captured_generator.h"
#include "models/ops/dispatch.h"
#include "models/ops/rows/rows.h"
#include "models/ops/scratch_sizes.h"
#include "src/base/error.h"

namespace ferry::ops::gpu {
namespace {

/** The columns of queries, keys or values in a row of qkv. */
struct Part {
  int64_t first;
  int64_t n_heads;
  int64_t head_width;

  int64_t width() const { return n_heads * head_width; }
};
struct Parts {
  Part q, k, v;

  Parts(const Attention& attention, const at::Tensor& qkv) {
    const int64_t H = attention.n_heads, kv = attention.kv_heads();
    const int64_t d = qkv.size(1) / (H + 2 * kv);
    q = {0, H, d};
    k = {H * d, kv, d};
    v = {(H + kv) * d, kv, d};
  }
};

/** LibTorch takes this where a number is its own. */
std::optional<double> scale_of(const Attention& attention) {
  if (attention.scale == 0) return std::nullopt;
  return attention.scale;
}

/** Flash attention's windows: how many tokens before and after itself one sees. */
std::optional<int64_t> tokens_before(const Attention& attention) {
  if (attention.window == 0) return std::nullopt;
  return attention.window - 1;
}
std::optional<int64_t> tokens_after(const Attention& attention) {
  if (attention.window == 0) return std::nullopt;
  return 0;
}

/** The memory-efficient kernels' window counts the token itself. */
std::optional<int64_t> window_of(const Attention& attention) {
  if (attention.window == 0) return std::nullopt;
  return attention.window;
}

/** The part as (T, heads, head width), a view of qkv. */
at::Tensor view_of(const at::Tensor& qkv, const Part& part) {
  return qkv.narrow(1, part.first, part.width()).view({qkv.size(0), part.n_heads, part.head_width});
}

/** Joins the gradients that LibTorch's backward functions give apart, (T, heads, head width) each,
 * side by side in d_qkv. */
void join(const at::Tensor& dq,
          const at::Tensor& dk,
          const at::Tensor& dv,
          const AttentionBackward& its) {
  const ScratchScope scope(its.scratch);
  FERRY_CHECK(dq.is_contiguous() && dk.is_contiguous() && dv.is_contiguous(),
              "gradients of attention are not contiguous");
  const int64_t T = its.d_qkv.size(0), Q = its.d_qkv.size(1);
  const JoinQkvGradients joined = {.type = dtype_of(its.d_qkv),
                                   .T = T,
                                   .q_width = dq.size(1) * dq.size(2),
                                   .kv_width = dk.size(1) * dk.size(2),
                                   .dq = data_of(dq),
                                   .dk = data_of(dk),
                                   .dv = data_of(dv),
                                   .dqkv = data_of(its.d_qkv),
                                   .dbias = data_of(its.d_bias)};
  const int64_t n_bytes = its.d_bias.defined() ? column_sum_scratch_bytes(T, Q) : 0;
  kCudaAttention.join_qkv_gradients(joined, launch_on(its.d_qkv, take_bytes(its.scratch, n_bytes)));
}

}  // namespace

GeneratorLock seed_generator(const at::Tensor& on, Dropout dropout, uint64_t offset) {
  if (dropout.p == 0) return {};
  GeneratorLock held = hold_generator();
  if (dropout.key_at) {
    FERRY_CHECK(offset == 0, "captured with an offset of {}", offset);
    seed_captured_generator(dropout.key_at);
    return held;
  }
  at::Generator generator = at::globalContext().defaultGenerator(on.device());
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(dropout.key);
  generator.set_offset(offset);
  return held;
}

int64_t flash_length(const BatchTensors& batch) {
  return round_up(batch.shape.max_length, 128);
}

void flash_forward(const AttentionForward& its) {
  const auto held = seed_generator(its.qkv, its.attention.dropout);
  const Parts parts(its.attention, its.qkv);
  const int64_t length = flash_length(its.batch);
  const auto [out, lse, rng, unused, mask] = at::_flash_attention_forward(
      view_of(its.qkv, parts.q), view_of(its.qkv, parts.k), view_of(its.qkv, parts.v),
      its.batch.cu_seqlens, its.batch.cu_seqlens, length, length, its.attention.dropout.p,
      its.attention.causal,
      /*return_debug_mask=*/false, scale_of(its.attention), tokens_before(its.attention),
      tokens_after(its.attention));
  its.context.copy_(out.view(its.context.sizes()));
  its.state[0].copy_(lse.view(its.state[0].sizes()));
  if (its.attention.dropout.p > 0) its.state[1].copy_(rng.view(at::kLong));
}

void flash_backward(const AttentionBackward& its) {
  const Parts parts(its.attention, its.qkv);
  const int64_t length = flash_length(its.batch);
  const at::Tensor q = view_of(its.qkv, parts.q);
  const at::Tensor rng = its.state[1].view(at::kUInt64);
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      its.d_context.view(q.sizes()), q, view_of(its.qkv, parts.k), view_of(its.qkv, parts.v),
      its.context.view(q.sizes()), its.state[0], its.batch.cu_seqlens, its.batch.cu_seqlens, length,
      length, its.attention.dropout.p, its.attention.causal, rng, rng, scale_of(its.attention),
      tokens_before(its.attention), tokens_after(its.attention));
  join(dq, dk, dv, its);
}

namespace {

/** Sequences of one length that follow each other. */
struct Run {
  int64_t first_token = 0, n_seqs = 0, length = 0;
  int64_t first_lse = 0;       ///< element of the saved sums of exponentials
  uint64_t random_offset = 0;  ///< the begin of its masks in the key's random sequence
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

/** The run's rows of a (T, ...) matrix as (n_seqs, length, heads, head width). */
at::Tensor rectangle(const at::Tensor& x, const Run& run, const Part& part) {
  return x.narrow(0, run.first_token, run.tokens())
      .narrow(1, part.first, part.width())
      .view({run.n_seqs, run.length, part.n_heads, part.head_width});
}

/** Keys and values with a head for each of the queries', which is all that these kernels take. */
struct KeysAndValues {
  at::Tensor keys, values;  ///< (T, ...) with the columns of:
  Part k, v;

  /** Views of qkv, or where heads are grouped copies out of the scratch. */
  KeysAndValues(const Parts& parts, const at::Tensor& qkv, Scratch& scratch)
      : keys(qkv), values(qkv), k(parts.k), v(parts.v) {
    if (parts.q.n_heads == parts.k.n_heads) return;
    keys = repeated(parts, parts.k, qkv, scratch);
    values = repeated(parts, parts.v, qkv, scratch);
    k = v = parts.q;
  }

 private:
  static at::Tensor repeated(const Parts& parts,
                             const Part& part,
                             const at::Tensor& qkv,
                             Scratch& scratch) {
    at::Tensor out = scratch.take({qkv.size(0), parts.q.width()}, qkv.scalar_type());
    out.view({qkv.size(0), part.n_heads, parts.q.n_heads / part.n_heads, part.head_width})
        .copy_(view_of(qkv, part).unsqueeze(2));
    return out;
  }
};

/** The gradient (n_seqs, length, heads, head width) into its columns of d_qkv, the heads of a group
 * added up. */
void put_gradient(const at::Tensor& grad, const Run& run, const Part& part, at::Tensor& d_qkv) {
  at::Tensor to = rectangle(d_qkv, run, part);
  if (grad.size(2) == part.n_heads) {
    to.copy_(grad);
    return;
  }
  const int64_t group = grad.size(2) / part.n_heads;
  at::sum_out(to, grad.view({run.n_seqs, run.length, part.n_heads, group, part.head_width}), {3});
}

/** LibTorch's CustomMaskType: none, or causal from the first token on. */
int64_t mask_type_of(const Attention& attention) {
  return attention.causal ? 1 : 0;
}

at::Tensor lse_of(const at::Tensor& state, const Run& run, int64_t n_heads) {
  const int64_t rounded = round_up(run.length, 32);
  return state.narrow(0, run.first_lse, run.n_seqs * n_heads * rounded)
      .view({run.n_seqs, n_heads, rounded});
}

}  // namespace

void efficient_forward(const AttentionForward& its) {
  const ScratchScope scope(its.scratch);
  const Parts parts(its.attention, its.qkv);
  const KeysAndValues kv(parts, its.qkv, its.scratch);
  for (const Run& run : runs_of(its.batch, its.attention.n_heads)) {
    const auto held = seed_generator(its.qkv, its.attention.dropout, run.random_offset);
    const auto [out, lse, seed, offset, max_q, max_k] = at::_efficient_attention_forward(
        rectangle(its.qkv, run, parts.q), rectangle(kv.keys, run, kv.k),
        rectangle(kv.values, run, kv.v), /*bias=*/{}, /*cu_seqlens_q=*/{}, /*cu_seqlens_k=*/{},
        /*max_seqlen_q=*/{}, /*max_seqlen_k=*/{}, its.attention.dropout.p,
        mask_type_of(its.attention),
        /*compute_log_sumexp=*/true, scale_of(its.attention), /*seqlen_k=*/{},
        window_of(its.attention));
    rectangle(its.context, run, parts.q).copy_(out);
    lse_of(its.state[0], run, its.attention.n_heads).copy_(lse);
  }
}

void efficient_backward(const AttentionBackward& its) {
  const auto scalar = [](uint64_t value) {
    return at::scalar_tensor(static_cast<int64_t>(value), at::dtype(at::kLong));
  };
  {
    const ScratchScope scope(its.scratch);
    const Parts parts(its.attention, its.qkv);
    const KeysAndValues kv(parts, its.qkv, its.scratch);
    for (const Run& run : runs_of(its.batch, its.attention.n_heads)) {
      const auto [dq, dk, dv, d_scores] = at::_efficient_attention_backward(
          rectangle(its.d_context, run, parts.q), rectangle(its.qkv, run, parts.q),
          rectangle(kv.keys, run, kv.k), rectangle(kv.values, run, kv.v), /*bias=*/{},
          rectangle(its.context, run, parts.q), /*cu_seqlens_q=*/{}, /*cu_seqlens_k=*/{},
          run.length, run.length, lse_of(its.state[0], run, its.attention.n_heads),
          its.attention.dropout.p, scalar(its.attention.dropout.key), scalar(run.random_offset),
          mask_type_of(its.attention),
          /*bias_requires_grad=*/false, scale_of(its.attention), /*num_splits_key=*/{},
          window_of(its.attention));
      put_gradient(dq, run, parts.q, its.d_qkv);
      put_gradient(dk, run, parts.k, its.d_qkv);
      put_gradient(dv, run, parts.v, its.d_qkv);
    }
  }
  if (its.d_bias.defined()) column_sum(its.d_qkv, its.d_bias, its.scratch);
}

}  // namespace ferry::ops::gpu
