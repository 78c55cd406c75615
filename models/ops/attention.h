#pragma once
// Self-attention over sequences laid end to end, (T, 3W) in and (T, W) out, never across a sequence
// boundary and without padding. Three backends: our own on the CPU; LibTorch's flash attention, and
// its memory-efficient one where flash does not run (fp32, Turing).

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>

#include "models/block.h"
#include "models/ops/dropout.h"

namespace ferry::ops {

struct Attention {
  AttentionBackend backend = AttentionBackend::cpu_math;
  int64_t n_heads = 0;
  Dropout dropout;
};

/** context (T, W) = softmax(q k^T / sqrt(head width)) v for each head and sequence. `state` is what
 * attention_saved declares (scratch_sizes.h), written here and read by the backward. */
void attention_forward(const Attention& attention,
                       const BatchTensors& batch,
                       const at::Tensor& qkv,  // (T, 3W): queries, keys, values; heads in order
                       std::span<at::Tensor> state,
                       at::Tensor& context,
                       Scratch& scratch);

/** d_bias is the column sum of d_qkv. Scratch: attention_scratch, then column_sum of (T, 3W). */
void attention_backward(const Attention& attention,
                        const BatchTensors& batch,
                        const at::Tensor& d_context,  // (T, W)
                        const at::Tensor& qkv,        // (T, 3W)
                        std::span<at::Tensor> state,
                        const at::Tensor& context,  // (T, W)
                        at::Tensor& d_qkv,          // (T, 3W)
                        at::Tensor& d_bias,         // (3W)
                        Scratch& scratch);

/** What Block::graph_shape says of attention: flash is one call, of as many blocks as the longest
 * sequence may need. The memory-efficient backend is called by runs of sequences of one length,
 * which other batches do not share. */
std::optional<Block::GraphShape> attention_graph_shape(AttentionBackend backend,
                                                       const BatchTensors& batch);

}  // namespace ferry::ops
