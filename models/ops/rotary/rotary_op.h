#pragma once
// Rotary positions of queries and keys, in place.
#include "models/core/operation.h"
#include "models/ops/rotary/rope_frequencies.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

struct RotaryAttributes {
  AttentionHeads heads;
  RopeTable rope;
  bool interleaved = false;  ///< a pair is two neighbours
};

/** Rows of queries, keys and values. */
template <class T>
struct RotaryValues {
  T qkv, y;
  static constexpr std::array<std::string_view, 2> kNames = {"qkv", "y"};
};

template <class T>
struct RotaryGrads {
  T dy, dx;
  static constexpr std::array<std::string_view, 2> kNames = {"dy", "dx"};
};

struct Rotary;
/** As the functions on tensors take them; `rope` outlives it. */
Rotary rotary_of(const AttentionHeads& heads, const RopeTable& rope, bool interleaved);

/** The attributes as a text. */
std::string text_of(const AttentionHeads& heads);
std::string text_of(const RopeTable& rope);

extern const OpDef kRotary;

}  // namespace ferry::ops
