#pragma once
// y = a + b.
#include "models/core/operation.h"

namespace ferry::ops {

template <class T>
struct AddValues {
  T a, b, y;
  static constexpr std::array<std::string_view, 3> kNames = {"a", "b", "y"};
};

extern const OpDef kAdd;

}  // namespace ferry::ops
