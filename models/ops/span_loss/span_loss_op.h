#pragma once
// The loss of an answer's first and last token.
#include "models/core/operation.h"

namespace ferry::ops {

template <class T>
struct SpanLossStates {
  T lse;
  static constexpr std::array<std::string_view, 1> kNames = {"lse"};
};

template <class T>
struct SpanLossValues {
  T logits;
  static constexpr std::array<std::string_view, 1> kNames = {"logits"};
};

template <class T>
struct SpanLossGrads {
  T logits, d_logits;
  static constexpr std::array<std::string_view, 2> kNames = {"logits", "d_logits"};
};

extern const OpDef kSpanLoss;

}  // namespace ferry::ops
