#pragma once
// Some rows of a value: the first or the last token of each sequence, or the tokens with a
// label, of which a sequence may have one.
#include "models/core/operation.h"

namespace ferry::ops {

/** A remake has the same operands. */
template <class T>
struct RowsValues {
  T x, y;
  static constexpr std::array<std::string_view, 2> kNames = {"x", "y"};
};

/** Rows that were not taken get a gradient of zero. */
template <class T>
struct RowsGrads {
  T dy, dx;
  static constexpr std::array<std::string_view, 2> kNames = {"dy", "dx"};
};

/** kAskedRows: the one token of each sequence that BatchTensors::label_rows names. */
extern const OpDef kFirstRows, kLastRows, kLabelledRows, kAskedRows;

}  // namespace ferry::ops
