#pragma once
// The ranks that share the work on each micro-batch.

namespace ferry {

struct Sharing {
  /** Ranks that share its tokens, and in attention the heads (sequence parallelism). */
  int sp_size = 1;
  /** Ranks that share the heads and columns of its layers (tensor parallelism). */
  int tp_size = 1;

  int n_ranks() const { return sp_size * tp_size; }
  bool operator==(const Sharing&) const = default;
};

}  // namespace ferry
