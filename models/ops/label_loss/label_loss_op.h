#pragma once
// The loss of each sequence or token by its label, as the run's LossKind says.
#include "models/core/operation.h"

namespace ferry::ops {

template <class T>
struct LabelLossValues {
  T logits;
  static constexpr std::array<std::string_view, 1> kNames = {"logits"};
};

template <class T>
struct LabelLossGrads {
  T logits, d_logits;
  static constexpr std::array<std::string_view, 2> kNames = {"logits", "d_logits"};
};

extern const OpDef kLabelLoss;

}  // namespace ferry::ops
