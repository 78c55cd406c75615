#pragma once
// The scale of an adapter's rows (DoRA, Liu et al. 2024, arXiv:2402.09353): y = g (W + s B A) x + b
// with g = m / |W + s B A|, a norm for each row. Torch-free.
#include <vector>

#include "models/core/operation.h"
#include "models/ops/low_rank/low_rank_op.h"

namespace ferry::ops {

/** Each part has as many rows of A as B has columns, behind the rows of the part before. */
struct DoraScaleAttributes {
  float factor = 1;                ///< s
  int64_t columns = 0, rank = 0;   ///< of W, and of A
  std::vector<LowRankPart> parts;  ///< the next rows of B and m, and the rows of W
};

/** scale (2, rows of W) fp32: g, and 1 / |W + s B A|. Rows of no part are those of `before`, or 1
 * and 0 where it is not there. The norm is found without W + s B A itself. */
template <class T>
struct DoraScaleValues {
  T before, scale;
  static constexpr std::array<std::string_view, 2> kNames = {"before", "scale"};
};

/** Part::params: the gradient of m. The norm counts as a constant, as its authors have it. */
template <class T>
struct DoraScaleGrads {
  T d_scale, scale;
  static constexpr std::array<std::string_view, 2> kNames = {"d_scale", "scale"};
};

template <class T>
struct DoraScaleParams {
  T weight, a, b, magnitude;
  static constexpr std::array<std::string_view, 4> kNames = {"weight", "a", "b", "magnitude"};
};

struct DoraAttributes {
  float bias_factor = 1;
  /** The attention behind it sums the gradient of its bias. */
  bool sums_bias = false;
  int64_t first_key = 0, n_keys = 0;  ///< columns whose bias has no gradient
};

/** y = base + (g v - plain) + bias_factor * bias. `base` and `plain` come together, or not. */
template <class T>
struct DoraValues {
  T v, scale, base, plain, y;
  static constexpr std::array<std::string_view, 5> kNames = {"v", "scale", "base", "plain", "y"};
};

/** dv may be dy where d_plain is not there. */
template <class T>
struct DoraGrads {
  T dy, v, scale, dv, d_plain, d_scale;
  static constexpr std::array<std::string_view, 6> kNames = {"dy", "v",       "scale",
                                                             "dv", "d_plain", "d_scale"};
};

/** Part::params: the gradient of the bias. */
template <class T>
struct DoraBiasGrads {
  T dy;
  static constexpr std::array<std::string_view, 1> kNames = {"dy"};
};

/** `bias` may be absent. */
template <class T>
struct DoraParams {
  T bias;
  static constexpr std::array<std::string_view, 1> kNames = {"bias"};
};

extern const OpDef kDoraScale, kDora;

}  // namespace ferry::ops
