#pragma once
// y = base + factor * h w^T, in the columns of y that the rows of w are for: the second half of a
// low-rank adapter (LoRA, Hu et al. 2021), whose first half is the linear map h = x a^T.
#include <vector>

#include "models/core/operation.h"

namespace ferry::ops {

/** The next rows of w, and the columns of h and y that they lead from and to. */
struct LowRankPart {
  int64_t first = 0;  ///< column of y
  int64_t n = 0;      ///< rows of w
};

/** Each part reads as many columns of h as w has, behind the columns of the part before. */
struct LowRankAttributes {
  float factor = 1;
  std::vector<LowRankPart> parts;
};

template <class T>
struct LowRankValues {
  T base, h, y;
  static constexpr std::array<std::string_view, 3> kNames = {"base", "h", "y"};
};

template <class T>
struct LowRankGrads {
  T dy, dh;
  static constexpr std::array<std::string_view, 2> kNames = {"dy", "dh"};
};

/** Part::params: the gradient of the weight. */
template <class T>
struct LowRankWeightGrads {
  T dy, h;
  static constexpr std::array<std::string_view, 2> kNames = {"dy", "h"};
};

/** (rows of all parts, rank) */
template <class T>
struct LowRankParams {
  T weight;
  static constexpr std::array<std::string_view, 1> kNames = {"weight"};
};

extern const OpDef kLowRank;

}  // namespace ferry::ops
