#include "models/ops/attention/attention.h"

#include "models/ops/attention/cpu_attention.h"
#include "models/ops/attention/gpu_attention.h"
#include "models/ops/dispatch.h"
#include "models/ops/rows/rows.h"
#include "simd/kernels.h"

namespace ferry::ops {
namespace {

cpu::AttentionShape cpu_shape(const Attention& attention, const BatchTensors& batch, int64_t W) {
  return {.cu_seqlens = batch.cu_seqlens_host.first(static_cast<size_t>(batch.n_seqs) + 1),
          .n_heads = attention.n_heads,
          .n_kv_heads = attention.kv_heads(),
          .head_width = W / attention.n_heads,
          .causal = attention.causal};
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
      return gpu::flash_forward(attention, batch, qkv, state, context);
    case AttentionBackend::memory_efficient:
      return gpu::efficient_forward(attention, batch, qkv, state, context, scratch);
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
  switch (attention.backend) {
    case AttentionBackend::cpu_math:
      backward_on_cpu(attention, batch, d_context, qkv, state[0], d_qkv, scratch);
      if (d_bias.defined()) column_sum(d_qkv, d_bias, scratch);
      return;
    case AttentionBackend::flash:
      return gpu::flash_backward(attention, batch, d_context, qkv, state, context, d_qkv, d_bias,
                                 scratch);
    case AttentionBackend::memory_efficient:
      return gpu::efficient_backward(attention, batch, d_context, qkv, state, context, d_qkv,
                                     d_bias, scratch);
  }
}

std::optional<Block::GraphShape> attention_graph_shape(AttentionBackend backend,
                                                       const BatchTensors& batch) {
  if (backend != AttentionBackend::flash) return std::nullopt;
  return Block::GraphShape{batch.n_seqs, gpu::flash_length(batch)};
}

}  // namespace ferry::ops
