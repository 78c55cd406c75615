#include "src/request/gpu_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "offload/step/ranks.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** A sum of shares that is as fine as a measured speed. */
constexpr int64_t kSum_most = 64;
/** Smaller sums are taken where a step is so little longer. Measured times differ by as much. Where
 * the step is yet to be cut, more micro-batches are smaller ones, which take longer themselves. */
constexpr double kSlack_fixed = 0.02, kSlack_open = 0.1;

/** Seconds of a piece, relative to others, where each rank takes its pieces one after the other. */
double seconds_each(std::span<const double> seconds,
                    const std::vector<int>& shares,
                    const SharedPieces& pieces) {
  const Ranks ranks = {.world = static_cast<int>(seconds.size()), .shares = shares};
  int64_t n_all = pieces.n;
  std::vector<int> n_of = shares;
  if (pieces.is_fixed) {
    const Rounds rounds(ranks, static_cast<int>(pieces.n));
    for (int rank = 0; rank < ranks.world; ++rank)
      n_of[static_cast<size_t>(rank)] = rounds.n_of(rank);
  } else {
    n_all = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  }
  double longest_s = 0;
  for (size_t rank = 0; rank < seconds.size(); ++rank)
    longest_s = std::max(longest_s, n_of[rank] * seconds[rank]);
  return longest_s / static_cast<double>(n_all);
}

}  // namespace

std::vector<int> shares_by_speed(std::span<const double> seconds, const SharedPieces& pieces) {
  FERRY_CHECK(pieces.n > 0 && !seconds.empty(), "{} pieces for {} ranks", pieces.n, seconds.size());
  FERRY_CHECK(std::ranges::min(seconds) > 0, "a rank takes {} s", std::ranges::min(seconds));
  const int64_t world = std::ssize(seconds), n_fine = std::max(2 * world, kSum_most),
                n_most = pieces.is_fixed ? n_fine : std::clamp(pieces.n, world, n_fine);
  struct Candidate {
    std::vector<int> shares;
    double seconds_each;
  };
  std::vector<Candidate> candidates;
  // Each further piece goes to the rank that would be the first to end with it.
  std::vector<int> shares(seconds.size(), 1);
  for (int64_t sum = world;; ++sum) {
    candidates.push_back({shares, seconds_each(seconds, shares, pieces)});
    if (sum == n_most) break;
    size_t first = 0;
    const auto end_s = [&](size_t rank) { return (shares[rank] + 1) * seconds[rank]; };
    for (size_t rank = 1; rank < seconds.size(); ++rank)
      if (end_s(rank) < end_s(first)) first = rank;
    ++shares[first];
  }
  const double least_s =
                   std::ranges::min_element(candidates, {}, &Candidate::seconds_each)->seconds_each,
               enough_s = least_s * (1 + (pieces.is_fixed ? kSlack_fixed : kSlack_open));
  const auto found = std::ranges::find_if(
      candidates, [&](const Candidate& its) { return its.seconds_each <= enough_s; });
  shares = std::move(found->shares);
  const int common = std::accumulate(shares.begin(), shares.end(), 0, std::gcd<int, int>);
  for (int& share : shares)
    share /= common;
  return shares;
}

bool may_share_unlike(const config::Config& config, const RunRanks& ranks) {
  const int n_stages = n_stages_of(config, ranks).value_or(1);
  return ranks.world > 1 && (n_stages == 1 || n_stages == ranks.world) &&
         sharing_of(config, ranks).n_ranks() == 1;
}

SharedPieces shared_pieces(const config::Config& config, const RunRanks& ranks, int64_t n_blocks) {
  if (n_stages_of(config, ranks).value_or(1) > 1) return {.n = n_blocks};
  const int64_t n_samples = config.integer("train_batch_size");
  const auto micro_batch = config.maybe_integer("per_device_train_batch_size");
  if (!micro_batch) return {.n = n_samples};
  return {.n = (n_samples + *micro_batch - 1) / *micro_batch, .is_fixed = true};
}

}  // namespace ferry
