#include "models/ops/attention/attention.h"

#include <fmt/format.h>

#include "models/ops/attention/cpu_attention.h"
#include "models/ops/attention/gpu_attention.h"
#include "models/ops/dispatch.h"
#include "models/ops/rows/rows.h"
#include "simd/kernels.h"
#include "src/base/error.h"

namespace ferry::ops {
namespace {

cpu::AttentionShape cpu_shape(const Attention& attention, const BatchTensors& batch, int64_t W) {
  return {.cu_seqlens = batch.cu_seqlens_host.first(static_cast<size_t>(batch.n_seqs) + 1),
          .n_heads = attention.n_heads,
          .n_kv_heads = attention.kv_heads(),
          .head_width = W / attention.n_heads,
          .causal = attention.causal,
          .window = attention.window,
          .scale = static_cast<float>(attention.scale),
          .soft_cap = attention.soft_cap,
          .n_all_heads = attention.n_all_heads,
          .first_head = attention.first_head};
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

void forward_on_cpu(const AttentionForward& its) {
  const ScratchScope scope(its.scratch);
  const at::Tensor wide_qkv = widened(its.qkv, its.scratch);
  const at::Tensor wide_context = result_of(its.context, its.scratch);
  const at::Tensor& probs = its.state[0];
  cpu::attention_forward(cpu_shape(its.attention, its.batch, its.context.size(1)),
                         its.attention.dropout, floats_of(wide_qkv), dtype_of(probs),
                         data_of(probs), floats_of(wide_context));
  narrow_into(wide_context, its.context);
}

void backward_on_cpu(const AttentionBackward& its) {
  const ScratchScope scope(its.scratch);
  const at::Tensor wide_qkv = widened(its.qkv, its.scratch);
  const at::Tensor wide_d_context = widened(its.d_context, its.scratch);
  const at::Tensor wide_d_qkv = result_of(its.d_qkv, its.scratch);
  const at::Tensor& probs = its.state[0];
  cpu::attention_backward(cpu_shape(its.attention, its.batch, its.d_context.size(1)),
                          its.attention.dropout, floats_of(wide_d_context), floats_of(wide_qkv),
                          dtype_of(probs), data_of(probs), floats_of(wide_d_qkv));
  narrow_into(wide_d_qkv, its.d_qkv);
}

}  // namespace

void attention_forward(const Attention& attention,
                       const BatchTensors& batch,
                       const at::Tensor& qkv,
                       std::span<at::Tensor> state,
                       at::Tensor& context,
                       Scratch& scratch) {
  FERRY_CHECK(attention.window == 0 || attention.causal, "a window of tokens on both sides");
  const AttentionForward its = {attention, batch, qkv, state, context, scratch};
  if (attention.soft_cap > 0 && attention.backend != AttentionBackend::cpu_math)
    return gpu::capped_forward(its);
  switch (attention.backend) {
    case AttentionBackend::cpu_math:
      return forward_on_cpu(its);
    case AttentionBackend::flash:
      return gpu::flash_forward(its);
    case AttentionBackend::memory_efficient:
      return gpu::efficient_forward(its);
  }
}

void attention_backward(const Attention& attention,
                        const BatchTensors& batch,
                        const at::Tensor& d_context,
                        const at::Tensor& qkv,
                        std::span<at::Tensor> state,
                        const at::Tensor& context,
                        at::Tensor& d_qkv,
                        const at::Tensor& d_bias,
                        Scratch& scratch) {
  const AttentionBackward its = {.attention = attention,
                                 .batch = batch,
                                 .d_context = d_context,
                                 .qkv = qkv,
                                 .state = state,
                                 .context = context,
                                 .d_qkv = d_qkv,
                                 .d_bias = d_bias,
                                 .scratch = scratch};
  if (attention.soft_cap > 0 && attention.backend != AttentionBackend::cpu_math)
    return gpu::capped_backward(its);
  switch (attention.backend) {
    case AttentionBackend::cpu_math:
      backward_on_cpu(its);
      if (d_bias.defined()) column_sum(d_qkv, d_bias, scratch);
      return;
    case AttentionBackend::flash:
      return gpu::flash_backward(its);
    case AttentionBackend::memory_efficient:
      return gpu::efficient_backward(its);
  }
}

std::optional<Block::GraphShape> attention_graph_shape(AttentionBackend backend,
                                                       const BatchTensors& batch) {
  if (backend != AttentionBackend::flash) return std::nullopt;
  return Block::GraphShape{batch.n_seqs, gpu::flash_length(batch)};
}

}  // namespace ferry::ops
