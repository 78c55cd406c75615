#pragma once
// The two ends of an expert: the rows of the tokens that a router (route_op.h) sends to it, and
// their results added to all tokens' sum, each times its weight.
#include "models/core/operation.h"

namespace ferry::ops {

struct RoutedAttributes {
  int64_t expert = 0;
};

template <class T>
struct TakeRoutedValues {
  T x;                ///< (tokens, columns)
  T routes, offsets;  ///< of RouteValues
  T y;                ///< (routed rows, columns)
  static constexpr std::array<std::string_view, 4> kNames = {"x", "routes", "offsets", "y"};
};

/** `sum`: a part of dx that is there already. */
template <class T>
struct TakeRoutedGrads {
  T dy, routes, sum, dx;
  static constexpr std::array<std::string_view, 4> kNames = {"dy", "routes", "sum", "dx"};
};

/** y += weights * x in the tokens' rows: y is a running sum of the model. */
template <class T>
struct AddRoutedValues {
  T x;        ///< (routed rows, columns)
  T routes;   ///< of RouteValues
  T weights;  ///< the same
  T y;        ///< (tokens, columns)
  static constexpr std::array<std::string_view, 4> kNames = {"x", "routes", "weights", "y"};
};

/** The expert writes its rows of d_weights; `sum` has the rows of other experts. */
template <class T>
struct AddRoutedGrads {
  T dy, x, routes, weights, dx, sum, d_weights;
  static constexpr std::array<std::string_view, 7> kNames = {"dy", "x",   "routes",   "weights",
                                                             "dx", "sum", "d_weights"};
};

extern const OpDef kTakeRouted, kAddRouted;

}  // namespace ferry::ops
