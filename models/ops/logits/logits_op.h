#pragma once
// x w^T + bias in fp32.
#include "models/core/operation.h"

namespace ferry::ops {

struct LogitsAttributes {
  bool by_column = false;  ///< they lie as (columns, rows)
};

/** `bias` may be absent. */
template <class T>
struct LogitsParams {
  T weight, bias;
  static constexpr std::array<std::string_view, 2> kNames = {"weight", "bias"};
};

template <class T>
struct LogitsValues {
  T x, logits;
  static constexpr std::array<std::string_view, 2> kNames = {"x", "logits"};
};

template <class T>
struct LogitsGrads {
  T d_logits, x, dx;
  static constexpr std::array<std::string_view, 3> kNames = {"d_logits", "x", "dx"};
};

extern const OpDef kLogits;

}  // namespace ferry::ops
