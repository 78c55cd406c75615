#pragma once
// Attention of sequences laid end to end, on the CPU, in fp32: every sequence and head by itself,
// no padding. The probabilities of all of them are kept for the backward, packed, blocks of rows
// one after another (of a causal block, the columns that one of its rows sees); where dropout took
// one away its sign is set, so the backward draws nothing.

#include <cstdint>
#include <span>

#include "models/ops/dropout_mask.h"
#include "src/base/dtype.h"

namespace ferry::ops::cpu {

struct AttentionShape {
  std::span<const int32_t> cu_seqlens;  ///< (n_seqs + 1)
  int64_t n_heads = 0;                  ///< heads of queries
  int64_t n_kv_heads = 0;               ///< heads of keys and values, a divisor of n_heads
  int64_t head_width = 0;
  bool causal = false;
  int64_t window = 0;  ///< tokens that a causal one sees, itself the last; 0: all
  float scale = 0;     ///< of scores; 0: 1 / sqrt(head_width)
  float soft_cap = 0;  ///< scores s become cap * tanh(s / cap); 0: they do not
  int64_t n_all_heads = 0, first_head = 0;  ///< as in Attention

  int64_t width() const { return n_heads * head_width; }
  int64_t qkv_width() const { return (n_heads + 2 * n_kv_heads) * head_width; }
  int64_t group() const { return n_heads / n_kv_heads; }  ///< queries of a key head
  int64_t n_seqs() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }
};

/** context[t] (T, W) = for each head softmax(scale * q k^T), dropout, times v. The
 * elements of the mask: sequence after sequence, each (n_all_heads, length, length) from a multiple
 * of kProbsAlignment_elements on. */
void attention_forward(const AttentionShape& shape,
                       Dropout dropout,
                       const float* qkv,  // (T, qkv_width)
                       DType probs_type,
                       void* probs,      // "attention.probs" of attention_saved()
                       float* context);  // (T, W)

void attention_backward(const AttentionShape& shape,
                        Dropout dropout,
                        const float* d_context,  // (T, W)
                        const float* qkv,        // (T, qkv_width)
                        DType probs_type,
                        const void* probs,
                        float* d_qkv);  // (T, qkv_width)

}  // namespace ferry::ops::cpu
