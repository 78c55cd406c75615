#pragma once
// Self-attention over sequences laid end to end, queries, keys and values in one row and (T, W)
// out, never across a sequence boundary and without padding; of all of a sequence, or causal. Heads
// of keys and values may be fewer than the queries' (grouped-query attention, Ainslie et al. 2023).
// Three backends: our own on the CPU; LibTorch's flash attention, and its memory-efficient one
// where flash does not run (fp32, Turing). Scores with a soft cap, which neither has, are made as
// such on a GPU.

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>

#include "models/core/block.h"
#include "models/ops/dropout_mask.h"

namespace ferry::ops {

struct Attention {
  AttentionBackend backend = AttentionBackend::cpu_math;
  int64_t n_heads = 0;
  Dropout dropout;
  int64_t n_kv_heads = 0;  ///< heads of keys and values, a divisor of n_heads; 0: as many
  bool causal = false;     ///< a token sees itself and those before it in its sequence
  double scale = 0;        ///< of scores; 0: 1 / sqrt(head width)
  int64_t window = 0;      ///< causal: tokens that one sees, itself the last (Mistral); 0: all
  float soft_cap = 0;      ///< of scores: cap * tanh(score / cap) (Gemma 2); 0: none
  /** These heads are some of so many, from `first_head` on; 0: they are all. The CPU's masks are
   * the masks of all heads. */
  int64_t n_all_heads = 0, first_head = 0;

  int64_t kv_heads() const { return n_kv_heads > 0 ? n_kv_heads : n_heads; }
};

/** context (T, W) = softmax(scale * q k^T) v for each head and sequence; query head h
 * goes with key head h / (n_heads / n_kv_heads). `state` is what attention_saved declares
 * (scratch_sizes.h), written here and read by the backward. Scratch: attention_scratch. */
void attention_forward(const Attention& attention,
                       const BatchTensors& batch,
                       const at::Tensor& qkv,  // (T, Q): queries, keys, values; heads in order
                       std::span<at::Tensor> state,
                       at::Tensor& context,
                       Scratch& scratch);

/** d_bias is the column sum of d_qkv, or undefined. Scratch: attention_scratch, then column_sum of
 * (T, Q) unless it is. */
void attention_backward(const Attention& attention,
                        const BatchTensors& batch,
                        const at::Tensor& d_context,  // (T, W)
                        const at::Tensor& qkv,        // (T, Q)
                        std::span<at::Tensor> state,
                        const at::Tensor& context,  // (T, W)
                        at::Tensor& d_qkv,          // (T, Q)
                        const at::Tensor& d_bias,   // (Q) or undefined
                        Scratch& scratch);

/** The part of Block::graph_shape that attention decides. Flash attention is one call, of as many
 * blocks as the longest sequence may need. The memory-efficient backend is called by runs of
 * sequences of one length, which other batches do not share. */
std::optional<Block::GraphShape> attention_graph_shape(AttentionBackend backend,
                                                       const BatchTensors& batch);

}  // namespace ferry::ops
