#pragma once
// The order of the samples: a permutation per epoch that is computed index by index from (seed,
// epoch), never stored. A position restores in O(1) at any size of dataset, which is what resuming
// in the middle of an epoch needs. The trainer plans each step from here (plan_step in
// src/data/step_plan.h).

#include <cstdint>
#include <vector>

namespace ferry {

/** Where the next sample is taken; position is in [0, n). */
struct SamplerPosition {
  int64_t epoch = 0;
  int64_t position = 0;

  bool operator==(const SamplerPosition&) const = default;
};

/** A bijection of [0, n) for every epoch.
 *
 *  A Feistel network over the digits (left, right) of a number in base a x b with a, b near
 * sqrt(n), keyed by (seed, epoch, round), with cycle walking back into [0, n); a * b < n + sqrt(n)
 * + 1, so nearly every index needs no second walk (Black and Rogaway, "Ciphers with arbitrary
 * finite domains", 2002). */
class Sampler {
 public:
  /** n > 0. shuffle = false: the order of the dataset, every epoch. */
  Sampler(int64_t n, uint64_t seed, bool shuffle = true);

  /** The sample at a position of an epoch; 0 <= position < n. */
  int64_t at(int64_t epoch, int64_t position) const;
  int64_t at(SamplerPosition where) const { return at(where.epoch, where.position); }
  int64_t size() const { return n_; }

 private:
  int64_t n_;
  uint64_t seed_;
  bool shuffle_;
  uint64_t n_left_, n_right_;  // a, b
};

/** Held-out and kept samples of one dataset; both ascending, disjoint, together all. */
struct Split {
  std::vector<int64_t> train, eval;
};

/** round(n * fraction) samples held out, at least 1 and at most n - 1, drawn by the seed.
 * Error(usage): n < 2, or fraction not in (0, 1). */
Split split(int64_t n, double fraction, uint64_t seed);

/** The same share of every class (to within one sample). `classes` has one id >= 0 a sample. */
Split split_stratified(const std::vector<int32_t>& classes, double fraction, uint64_t seed);

}  // namespace ferry
