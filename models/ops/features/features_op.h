#pragma once
// The rows of numbers of a batch's stream (StreamSpec::feature_columns), in the compute type.
#include "models/core/operation.h"

namespace ferry::ops {

template <class T>
struct FeaturesValues {
  T y;
  static constexpr std::array<std::string_view, 1> kNames = {"y"};
};

extern const OpDef kFeatures;

}  // namespace ferry::ops
