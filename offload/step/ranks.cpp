#include "offload/step/ranks.h"

namespace ferry {

int share_of(const Ranks& ranks, int rank) {
  return ranks.shares.empty() ? 1 : ranks.shares[static_cast<size_t>(rank)];
}

namespace {

/** The replicas as ranks that have all blocks. */
Ranks replicas_of(const Ranks& ranks) {
  return {.rank = ranks.replica(),
          .world = ranks.n_replicas(),
          .shares = ranks.n_stages == 1 ? ranks.shares : std::vector<int>()};
}
int largest_share(const Ranks& ranks) {
  return ranks.shares.empty() ? 1 : *std::ranges::max_element(ranks.shares);
}
/** Turns of the rank before the round, where no micro-batch is the last. */
int n_turns_before(const Ranks& ranks, int rank, int round) {
  return static_cast<int>(int64_t{round} * share_of(ranks, rank) / largest_share(ranks));
}
bool has_turn(const Ranks& ranks, int rank, int round) {
  return n_turns_before(ranks, rank, round + 1) > n_turns_before(ranks, rank, round);
}

}  // namespace

Rounds::Rounds(const Ranks& ranks, int n_micro) : ranks_(ranks) {
  const Ranks replicas = replicas_of(ranks);
  for (int n_left = n_micro, round = 0; n_left > 0; ++round) {
    std::vector<int>& present = present_.emplace_back();
    for (int replica = 0; replica < replicas.world && n_left > 0; ++replica)
      if (has_turn(replicas, replica, round)) {
        present.push_back(replica);
        --n_left;
      }
  }
}

std::vector<int> Rounds::present_by(int round) const {
  std::vector<int> replicas;
  for (int r = 0; r <= round; ++r)
    replicas.insert(replicas.end(), present(r).begin(), present(r).end());
  std::ranges::sort(replicas);
  replicas.erase(std::unique(replicas.begin(), replicas.end()), replicas.end());
  return replicas;
}

bool Rounds::has(int rank, int round) const {
  return std::ranges::binary_search(present(round), ranks_.replica_of(rank));
}

int Rounds::n_of(int rank) const {
  int n_micro = 0;
  for (int round = 0; round < n(); ++round)
    n_micro += has(rank, round);
  return n_micro;
}

std::vector<int> Rounds::micros_of(int rank) const {
  std::vector<int> micros;
  int micro = 0;
  for (const std::vector<int>& present : present_) {
    for (int replica : present) {
      if (replica == ranks_.replica_of(rank)) micros.push_back(micro);
      ++micro;
    }
  }
  return micros;
}

int64_t n_micro_of_rounds(const Ranks& of, int64_t n_rounds) {
  const Ranks ranks = replicas_of(of);
  int64_t n_micro = 0;
  for (int rank = 0; rank < ranks.world; ++rank)
    n_micro += n_turns_before(ranks, rank, static_cast<int>(n_rounds));
  return n_micro;
}

int micro_of_step(const Ranks& of, int nth) {
  const Ranks ranks = replicas_of(of);
  const int64_t largest = largest_share(ranks), share = share_of(ranks, ranks.rank);
  const auto round = static_cast<int>(((nth + 1) * largest + share - 1) / share - 1);
  int micro = 0;
  for (int rank = 0; rank < ranks.world; ++rank) {
    micro += n_turns_before(ranks, rank, round);
    if (rank < ranks.rank && has_turn(ranks, rank, round)) ++micro;
  }
  return micro;
}

}  // namespace ferry
