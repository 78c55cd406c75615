#include "src/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/base/error.h"
#include "src/data/hash.h"

namespace ferry {
namespace {

/** Twelve rounds: with few samples a round moves few bits, and no statistic of small permutations
 * tells twelve from a true shuffle (tests/data/sampler_test.cpp looks at all orders of four and
 * five). */
constexpr int kRounds = 12;

/** n samples held out of m; of every non-empty whole at least one stays and one goes. */
int64_t held_out(int64_t n, double fraction) {
  return std::clamp<int64_t>(std::llround(static_cast<double>(n) * fraction), 1, n - 1);
}

void check_fraction(int64_t n, double fraction) {
  if (!(fraction > 0 && fraction < 1))
    throw Error(Fault::usage, "data.split",
                fmt::format("the held-out share is {}, expected 0 < share < 1", fraction));
  if (n < 2)
    throw Error(Fault::data, "data.split", fmt::format("{} examples cannot be split", n),
                "give an evaluation dataset of its own");
}

Split split_by(const std::vector<bool>& is_eval) {
  Split result;
  for (size_t i = 0; i < is_eval.size(); ++i)
    (is_eval[i] ? result.eval : result.train).push_back(static_cast<int64_t>(i));
  return result;
}

}  // namespace

Sampler::Sampler(int64_t n, uint64_t seed, bool shuffle) : n_(n), seed_(seed), shuffle_(shuffle) {
  FERRY_CHECK(n > 0, "a sampler of {} samples", n);
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  const auto count = static_cast<uint64_t>(n);
  // Two digits of at least two values each, else three samples would only be rotated.
  n_left_ = n < 3 ? 1 : std::max<uint64_t>(root, 2);
  n_right_ = (count + n_left_ - 1) / n_left_;
}

int64_t Sampler::at(int64_t epoch, int64_t position) const {
  FERRY_CHECK(position >= 0 && position < n_, "position {} of {}", position, n_);
  if (!shuffle_) return position;
  const uint64_t key = hash_key(seed_, epoch);
  auto value = static_cast<uint64_t>(position);
  do {
    uint64_t left = value / n_right_, right = value % n_right_;
    for (int round = 0; round < kRounds; round += 2) {
      left += scale_below(random_bits(key + static_cast<uint64_t>(round), right), n_left_);
      if (left >= n_left_) left -= n_left_;
      right += scale_below(random_bits(key + static_cast<uint64_t>(round) + 1, left), n_right_);
      if (right >= n_right_) right -= n_right_;
    }
    value = left * n_right_ + right;
  } while (value >= static_cast<uint64_t>(n_));
  return static_cast<int64_t>(value);
}

Split split(int64_t n, double fraction, uint64_t seed) {
  check_fraction(n, fraction);
  const Sampler order(n,
                      hash_key(seed, 0x5711));  // its own stream: not the order of the first epoch
  std::vector<bool> is_eval(static_cast<size_t>(n));
  for (int64_t i = 0; i < held_out(n, fraction); ++i)
    is_eval[static_cast<size_t>(order.at(0, i))] = true;
  return split_by(is_eval);
}

Split split_stratified(const std::vector<int32_t>& classes, double fraction, uint64_t seed) {
  const auto n = static_cast<int64_t>(classes.size());
  check_fraction(n, fraction);
  const int32_t n_classes = 1 + *std::max_element(classes.begin(), classes.end());
  std::vector<std::vector<int64_t>> members(
      static_cast<size_t>(n_classes));  // each in shuffled order
  const Sampler order(n, hash_key(seed, 0x5711));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t sample = order.at(0, i);
    members[static_cast<size_t>(classes[static_cast<size_t>(sample)])].push_back(sample);
  }
  // Largest remainders: whole shares first, then one more for the classes that lost most by
  // rounding down.
  std::vector<int64_t> takes(members.size());
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = held_out(n, fraction);
  for (size_t c = 0; c < members.size(); ++c) {
    const double share = static_cast<double>(members[c].size()) * fraction;
    takes[c] = static_cast<int64_t>(share);
    left -= takes[c];
    remainders.emplace_back(static_cast<double>(takes[c]) - share, c);
  }
  std::sort(remainders.begin(), remainders.end());
  for (size_t i = 0; i < remainders.size() && left > 0; ++i) {
    const size_t c = remainders[i].second;
    if (takes[c] < static_cast<int64_t>(members[c].size())) ++takes[c], --left;
  }
  std::vector<bool> is_eval(classes.size());
  for (size_t c = 0; c < members.size(); ++c)
    for (int64_t i = 0; i < takes[c]; ++i)
      is_eval[static_cast<size_t>(members[c][static_cast<size_t>(i)])] = true;
  return split_by(is_eval);
}

}  // namespace ferry
