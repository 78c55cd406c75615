#pragma once
// The ranks of a run, and what each of them runs and updates. Ranks form replicas of the model, and
// each replica runs the passes of the micro-batches it was given. A replica has one rank, or
// several ranks that are its stages. Each stage has some of the blocks, and the values between
// blocks pass from rank to rank. The ranks of one stage, one in each replica, share its blocks.
// Each of them holds one part of a block's trained weights, of their master and states, and of the
// sum of their gradients.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simd/kernels.h"
#include "src/base/sharing.h"

namespace ferry {

struct Ranks {
  int rank = 0;   ///< this process's
  int world = 1;  ///< how many there are
  /** By rank: the micro-batches or blocks that it gets, relative to the other ranks. A GPU that is
   * twice as fast as another one has 2 beside 1. Empty: all get as many, as they must where there
   * are several replicas of several stages. */
  std::vector<int> shares = {};
  /** Stages of each replica, a divisor of the world. Ranks are numbered stage by stage, and within
   * a stage by replica. */
  int n_stages = 1;
  /** Replicas that follow each other share each micro-batch: a divisor of their number. What is
   * called a micro-batch of a rank is the rank's part of one. */
  Sharing sharing = {};
  bool operator==(const Ranks&) const = default;

  int n_replicas() const { return world / n_stages; }
  int replica_of(int of_rank) const { return of_rank % n_replicas(); }
  int stage_of(int of_rank) const { return of_rank / n_replicas(); }
  int replica() const { return replica_of(rank); }
  int stage() const { return stage_of(rank); }
  int rank_at(int stage, int replica) const { return stage * n_replicas() + replica; }
};

/** The order in which the gradients of a step's micro-batches are added where several ranks have
 * them. ordered: in the order of the micro-batches, whoever has them; the bits are those of one
 * rank. fast: each rank first adds those that it has, and these sums are added in the order of
 * ranks, so that fewer bytes pass between ranks; only where all micro-batches pass through a block
 * before the next one. */
enum class Reduction : uint8_t { ordered, fast };
constexpr std::string_view name_of(Reduction reduction) {
  return reduction == Reduction::fast ? "fast" : "ordered";
}

/** Elements [begin, begin + n) of a block. */
struct ElementRange {
  int64_t begin = 0, n = 0;
  int64_t end() const { return begin + n; }
  bool operator==(const ElementRange&) const = default;
};

/** The elements that both ranges have; none: n is 0. */
inline ElementRange common(const ElementRange& a, const ElementRange& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max<int64_t>(0, std::min(a.end(), b.end()) - begin)};
}

/** A replica's part of n elements. Parts are cut at chunks of the norm tree: the chunk sums of all
 * parts, in the order of replicas, are those of the whole. All parts have the same size but the
 * last ones, which may be smaller or empty. */
inline ElementRange part_of(int64_t n_elements, int replica, int n_replicas) {
  const int64_t n_each =
      (simd::norm_chunks(n_elements) + n_replicas - 1) / n_replicas * simd::kNormChunk;
  const int64_t begin = std::min(n_elements, replica * n_each);
  return {begin, std::min(n_elements, begin + n_each) - begin};
}

/** The share of a rank, or of a stage where there is one replica; 1 where all have as many. */
int share_of(const Ranks& ranks, int rank);

/** The micro-batches of a step in the rounds in which the replicas run them. Numbers go round by
 * round, and in a round over the replicas in order. A replica with the largest share has a
 * micro-batch in each round. Another one has its turns at even distances, each as late as can be,
 * since it takes longer. In the last round the last replicas may have none. */
class Rounds {
 public:
  Rounds(const Ranks& ranks, int n_micro);
  int n() const { return static_cast<int>(present_.size()); }
  /** The replicas with a micro-batch in the round, in order. */
  const std::vector<int>& present(int round) const { return present_[static_cast<size_t>(round)]; }
  /** The replicas that have a micro-batch in the round or had any before it, in order. */
  std::vector<int> present_by(int round) const;
  /** The rank's replica has a micro-batch in the round. */
  bool has(int rank, int round) const;
  /** Micro-batches of the rank. */
  int n_of(int rank) const;
  /** The numbers in the step of the rank's micro-batches. */
  std::vector<int> micros_of(int rank) const;

 private:
  Ranks ranks_;
  std::vector<std::vector<int>> present_;
};

/** The micro-batches of so many rounds, of which none is cut short. */
int64_t n_micro_of_rounds(const Ranks& ranks, int64_t n_rounds);

/** The number in a step of the micro-batch that is a rank's nth (from 0), however many follow. */
int micro_of_step(const Ranks& ranks, int nth);

}  // namespace ferry
