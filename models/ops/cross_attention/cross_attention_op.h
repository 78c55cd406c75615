#pragma once
// Attention of the tokens of a stream over the tokens of another, or of the same: sequence by
// sequence, with a bias of each distance if there is one.
#include "models/core/operation.h"

namespace ferry::ops {

/** Distances j - i between a key j and a query i, in buckets (Raffel et al. 2020, T5): small ones
 * each by itself, larger ones by their logarithm up to max_distance. */
struct DistanceBuckets {
  int64_t n = 0;             ///< 0: no bias
  int64_t max_distance = 0;  ///< and all beyond are in the last one
  bool both_ways = true;  ///< half of the buckets are for keys behind the query; else it sees none
  int64_t of(int64_t distance) const;
};

struct CrossAttentionAttributes {
  int64_t n_heads = 0;
  double scale = 1;  ///< of scores
  bool causal = false;
  int kv_stream = 0;
  DistanceBuckets buckets;
};

template <class T>
struct CrossAttentionValues {
  T q;        ///< (tokens, heads * head width)
  T kv;       ///< (tokens of kv_stream, 2 * heads * head width): keys, then values
  T bias;     ///< (buckets, heads) fp32, added to scores; may be absent
  T context;  ///< as q
  static constexpr std::array<std::string_view, 4> kNames = {"q", "kv", "bias", "context"};
};

/** `sum`: a part of d_bias that is there already. */
template <class T>
struct CrossAttentionGrads {
  T d_context, q, kv, bias, sum, dq, dkv, d_bias;
  static constexpr std::array<std::string_view, 8> kNames = {"d_context", "q",  "kv",  "bias",
                                                             "sum",       "dq", "dkv", "d_bias"};
};

extern const OpDef kCrossAttention;

}  // namespace ferry::ops
