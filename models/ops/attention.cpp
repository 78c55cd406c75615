#include "models/ops/attention.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <mutex>

#include "models/ops/cpu_attention.h"
#include "models/ops/road.h"
#include "simd/kernels.h"
#include "src/base/error.h"

namespace ferry::ops {
namespace {

cpu::AttentionShape cpu_shape(const Attention& attention, const BatchTensors& batch, int64_t W) {
  return {.cu_seqlens = batch.cu_seqlens_host.first(static_cast<size_t>(batch.n_seqs) + 1),
          .n_heads = attention.n_heads,
          .head_width = W / attention.n_heads};
}

/** A fp32 copy out of the scratch, or the tensor itself when it is fp32. */
at::Tensor widened(const at::Tensor& x, Scratch& scratch) {
  if (x.scalar_type() == at::kFloat) return x;
  at::Tensor wide = scratch.take(x.sizes(), at::kFloat);
  simd::convert(wide.data_ptr(), DType::f32, data_of(x), dtype_of(x), x.numel());
  return wide;
}
at::Tensor result_of(const at::Tensor& x, Scratch& scratch) {
  return x.scalar_type() == at::kFloat ? x : scratch.take(x.sizes(), at::kFloat);
}
void narrow_into(const at::Tensor& wide, at::Tensor& x) {
  if (x.scalar_type() == at::kFloat) return;
  simd::convert(data_of(x), dtype_of(x), wide.data_ptr(), DType::f32, x.numel());
}

void forward_on_cpu(const Attention& attention,
                    const BatchTensors& batch,
                    const at::Tensor& qkv,
                    at::Tensor& probs,
                    at::Tensor& context,
                    Scratch& scratch) {
  const ScratchScope scope(scratch);
  const at::Tensor wide_qkv = widened(qkv, scratch);
  const at::Tensor wide_context = result_of(context, scratch);
  cpu::attention_forward(cpu_shape(attention, batch, context.size(1)), attention.dropout,
                         floats_of(wide_qkv), dtype_of(probs), data_of(probs),
                         floats_of(wide_context));
  narrow_into(wide_context, context);
}

void backward_on_cpu(const Attention& attention,
                     const BatchTensors& batch,
                     const at::Tensor& d_context,
                     const at::Tensor& qkv,
                     const at::Tensor& probs,
                     at::Tensor& d_qkv,
                     Scratch& scratch) {
  const ScratchScope scope(scratch);
  const at::Tensor wide_qkv = widened(qkv, scratch);
  const at::Tensor wide_d_context = widened(d_context, scratch);
  const at::Tensor wide_d_qkv = result_of(d_qkv, scratch);
  cpu::attention_backward(cpu_shape(attention, batch, d_context.size(1)), attention.dropout,
                          floats_of(wide_d_context), floats_of(wide_qkv), dtype_of(probs),
                          data_of(probs), floats_of(wide_d_qkv));
  narrow_into(wide_d_qkv, d_qkv);
}

/** Queries, keys or values (part 0, 1, 2) as (T, H, head width), a view of qkv. */
at::Tensor part_of(const at::Tensor& qkv, int64_t part, int64_t n_heads) {
  const int64_t W = qkv.size(1) / 3;
  return qkv.narrow(1, part * W, W).view({qkv.size(0), n_heads, W / n_heads});
}

/** LibTorch's kernels draw from the device's default generator: key and offset 0 fix the mask. */
void seed_generator(const at::Tensor& on, Dropout dropout) {
  at::Generator generator = at::globalContext().defaultGenerator(on.device());
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(dropout.key);
  generator.set_offset(0);
}

void copy_parts(const at::Tensor& dq,
                const at::Tensor& dk,
                const at::Tensor& dv,
                at::Tensor& d_qkv) {
  const int64_t T = d_qkv.size(0), W = d_qkv.size(1) / 3;
  d_qkv.narrow(1, 0, W).copy_(dq.view({T, W}));
  d_qkv.narrow(1, W, W).copy_(dk.view({T, W}));
  d_qkv.narrow(1, 2 * W, W).copy_(dv.view({T, W}));
}

void flash_forward(const Attention& attention,
                   const BatchTensors& batch,
                   const at::Tensor& qkv,
                   std::span<at::Tensor> state,
                   at::Tensor& context) {
  if (attention.dropout.p > 0) seed_generator(qkv, attention.dropout);
  const int64_t H = attention.n_heads, length = batch.shape.max_length;
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
                    at::Tensor& d_qkv) {
  const int64_t H = attention.n_heads, length = batch.shape.max_length;
  const at::Tensor q = part_of(qkv, 0, H);
  const at::Tensor rng = state[1].view(at::kUInt64);
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      d_context.view(q.sizes()), q, part_of(qkv, 1, H), part_of(qkv, 2, H), context.view(q.sizes()),
      state[0], batch.cu_seqlens, batch.cu_seqlens, length, length, attention.dropout.p,
      /*is_causal=*/false, rng, rng);
  copy_parts(dq, dk, dv, d_qkv);
}

/** The part of the saved (n_seqs_max, H, length) that this micro-batch's sequences use. */
at::Tensor lse_of(const at::Tensor& state, const BatchTensors& batch) {
  return state.narrow(0, 0, batch.n_seqs);
}

void efficient_forward(const Attention& attention,
                       const BatchTensors& batch,
                       const at::Tensor& qkv,
                       std::span<at::Tensor> state,
                       at::Tensor& context) {
  if (attention.dropout.p > 0) seed_generator(qkv, attention.dropout);
  const int64_t H = attention.n_heads, length = batch.shape.max_length;
  const auto [out, lse, seed, offset, max_q, max_k] = at::_efficient_attention_forward(
      part_of(qkv, 0, H).unsqueeze(0), part_of(qkv, 1, H).unsqueeze(0),
      part_of(qkv, 2, H).unsqueeze(0), /*bias=*/{}, batch.cu_seqlens, batch.cu_seqlens, length,
      length, attention.dropout.p, /*custom_mask_type=*/0, /*compute_log_sumexp=*/true);
  context.copy_(out.view(context.sizes()));
  lse_of(state[0], batch).copy_(lse);
}

void efficient_backward(const Attention& attention,
                        const BatchTensors& batch,
                        const at::Tensor& d_context,
                        const at::Tensor& qkv,
                        std::span<at::Tensor> state,
                        const at::Tensor& context,
                        at::Tensor& d_qkv) {
  const int64_t H = attention.n_heads, length = batch.shape.max_length;
  const at::Tensor q = part_of(qkv, 0, H).unsqueeze(0);
  const at::Tensor seed =
      at::scalar_tensor(static_cast<int64_t>(attention.dropout.key), at::dtype(at::kLong));
  const at::Tensor offset = at::scalar_tensor(0, at::dtype(at::kLong));
  const auto [dq, dk, dv, d_bias] = at::_efficient_attention_backward(
      d_context.view(q.sizes()), q, part_of(qkv, 1, H).unsqueeze(0),
      part_of(qkv, 2, H).unsqueeze(0), /*bias=*/{}, context.view(q.sizes()), batch.cu_seqlens,
      batch.cu_seqlens, length, length, lse_of(state[0], batch), attention.dropout.p, seed, offset,
      /*custom_mask_type=*/0, /*bias_requires_grad=*/false);
  copy_parts(dq, dk, dv, d_qkv);
}

}  // namespace

void attention_forward(const Attention& attention,
                       const BatchTensors& batch,
                       const at::Tensor& qkv,
                       std::span<at::Tensor> state,
                       at::Tensor& context,
                       Scratch& scratch) {
  switch (attention.backend) {
    case AttentionBackend::cpu_math:
      return forward_on_cpu(attention, batch, qkv, state[0], context, scratch);
    case AttentionBackend::flash:
      return flash_forward(attention, batch, qkv, state, context);
    case AttentionBackend::memory_efficient:
      return efficient_forward(attention, batch, qkv, state, context);
  }
}

void attention_backward(const Attention& attention,
                        const BatchTensors& batch,
                        const at::Tensor& d_context,
                        const at::Tensor& qkv,
                        std::span<at::Tensor> state,
                        const at::Tensor& context,
                        at::Tensor& d_qkv,
                        Scratch& scratch) {
  switch (attention.backend) {
    case AttentionBackend::cpu_math:
      return backward_on_cpu(attention, batch, d_context, qkv, state[0], d_qkv, scratch);
    case AttentionBackend::flash:
      return flash_backward(attention, batch, d_context, qkv, state, context, d_qkv);
    case AttentionBackend::memory_efficient:
      return efficient_backward(attention, batch, d_context, qkv, state, context, d_qkv);
  }
}

}  // namespace ferry::ops
