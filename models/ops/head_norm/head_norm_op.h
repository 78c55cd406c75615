#pragma once
// An RMSNorm of each head of queries and keys, then rotary positions.
#include "models/core/operation.h"
#include "models/ops/rotary/rotary_op.h"

namespace ferry::ops {

struct HeadNormAttributes {
  float eps = 0;
  float weight_offset = 0;  ///< weights count from it
  AttentionHeads heads;
  RopeTable rope;
};

template <class T>
struct HeadNormStates {
  T rstd;
  static constexpr std::array<std::string_view, 1> kNames = {"rstd"};
};

template <class T>
struct HeadNormParams {
  T q_weight, k_weight;
  static constexpr std::array<std::string_view, 2> kNames = {"q_weight", "k_weight"};
};

/** A remake has the same operands. */
template <class T>
struct HeadNormValues {
  T qkv, y;
  static constexpr std::array<std::string_view, 2> kNames = {"qkv", "y"};
};

/** dx may be dy. */
template <class T>
struct HeadNormGrads {
  T dy, qkv, dx;
  static constexpr std::array<std::string_view, 3> kNames = {"dy", "qkv", "dx"};
};

extern const OpDef kHeadNorm;

}  // namespace ferry::ops
