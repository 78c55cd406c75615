#pragma once
// A parameter as a value of fp32, for many blocks to read. It has a home of its own there: those
// blocks can lie anywhere, and their gradients of it add up as those of any value do.
#include "models/core/operation.h"

namespace ferry::ops {

template <class T>
struct TableValues {
  T y;  ///< (rows, columns) of the table
  static constexpr std::array<std::string_view, 1> kNames = {"y"};
};

template <class T>
struct TableGrads {
  T dy;
  static constexpr std::array<std::string_view, 1> kNames = {"dy"};
};

template <class T>
struct TableParams {
  T table;
  static constexpr std::array<std::string_view, 1> kNames = {"table"};
};

extern const OpDef kTable;

}  // namespace ferry::ops
