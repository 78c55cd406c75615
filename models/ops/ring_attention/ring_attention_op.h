#pragma once
// Attention of ranks that share tokens and keep them: keys and values of the other ranks come
// round, and each rank adds their part to the context of its own tokens (ring attention, Liu et al.
// 2023, arXiv:2310.01889). It takes any number of heads. The ranks have the tokens in order, so
// that two of them share at most one sequence, and of its keys only those that are seen are sent.
#include "models/core/operation.h"
#include "models/ops/attention/attention_op.h"

namespace ferry::ops {

/** lse (H, T) fp32; seeds (ranks, 2) int64, of flash attention's masks by the rank of the keys. */
template <class T>
struct RingAttentionStates {
  T lse, seeds;
  static constexpr std::array<std::string_view, 2> kNames = {"lse", "seeds"};
};

/** Its operands and attributes are those of attention (T tokens of a rank, all heads, no soft cap).
 */
extern const OpDef kRingAttention;

}  // namespace ferry::ops
