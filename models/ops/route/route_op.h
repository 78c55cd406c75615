#pragma once
// The router of a mixture of experts (Jiang et al. 2024, Mixtral): each token goes to the k experts
// with the largest probabilities. Its outputs are sorted by expert, then by token, so that an
// expert's rows lie together.
#include "models/core/operation.h"

namespace ferry::ops {

struct RouteAttributes {
  int64_t k = 0, n_experts = 0;
  /** The factor of the balance loss (Fedus et al. 2021, Switch), or 0. That loss is n_experts times
   * the sum, over experts, of their share of the tokens times their mean probability. */
  double balance = 0;
};

template <class T>
struct RouteValues {
  T logits;   ///< (tokens, experts) fp32
  T routes;   ///< (k * tokens, 1) int32: the token of each row
  T offsets;  ///< (experts + 1, 1) int32: the first row of each expert, then all rows
  T weights;  ///< (k * tokens, 1) fp32: a token's k weights are 1 together
  static constexpr std::array<std::string_view, 4> kNames = {"logits", "routes", "offsets",
                                                             "weights"};
};

template <class T>
struct RouteGrads {
  T logits, d_weights, d_logits;
  static constexpr std::array<std::string_view, 3> kNames = {"logits", "d_weights", "d_logits"};
};

extern const OpDef kRoute;

}  // namespace ferry::ops
