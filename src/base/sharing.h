#pragma once
// The ranks that share the work on each micro-batch.

namespace ferry {

/** How ranks that share tokens attend to those of the others. */
enum class SpAttention {
  automatic,  ///< by heads where these can be shared, else in a ring
  heads,      ///< each has all tokens of some heads (all-to-all)
  ring,       ///< keys and values come round
};

struct Sharing {
  /** Ranks that share its tokens (sequence parallelism). */
  int sp_size = 1;
  SpAttention sp_attention = SpAttention::automatic;
  /** Ranks that share the heads and columns of its layers (tensor parallelism). */
  int tp_size = 1;

  int n_ranks() const { return sp_size * tp_size; }
  bool operator==(const Sharing&) const = default;
};

}  // namespace ferry
