#pragma once
// The context of each token: attention over rows of queries, keys and values.
#include "models/core/operation.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

/** Scores of attention. */
struct ScoreRule {
  double scale = 0;    ///< 0: 1 / sqrt(head width)
  int64_t window = 0;  ///< of a causal attention: tokens that one sees, itself the last; 0: all
  float soft_cap = 0;  ///< scores s become cap * tanh(s / cap) (Gemma 2); 0: they do not
};

struct AttentionAttributes {
  AttentionHeads heads;
  bool causal = false;
  ScoreRule scores;
  float dropout = 0;  ///< probability
  int random = 0;     ///< RandomKey::of takes it
  /** Its backward sums the gradient of the bias of the linear map before it. */
  bool sums_bias = false;
};

/** `bias`: of the linear map before it, if its gradient is summed here. */
template <class T>
struct AttentionParams {
  T bias;
  static constexpr std::array<std::string_view, 1> kNames = {"bias"};
};

template <class T>
struct AttentionValues {
  T qkv, context;
  static constexpr std::array<std::string_view, 2> kNames = {"qkv", "context"};
};

template <class T>
struct AttentionGrads {
  T d_context, qkv, context, d_qkv;
  static constexpr std::array<std::string_view, 4> kNames = {"d_context", "qkv", "context",
                                                             "d_qkv"};
};

/** OpDef::attributes and OpDef::plan_backward of every attention over one value. */
std::string attention_text(const Op& op);
void plan_attention_backward(BackwardPlanner& planner, const Op& op);

extern const OpDef kAttention;

}  // namespace ferry::ops
