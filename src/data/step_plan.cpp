#include "src/data/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

void check_split(const StepSplit& split) {
  FERRY_CHECK(split.train_batch_size > 0 && split.micro_batch_size > 0,
              "a step of {} samples in parts of {}", split.train_batch_size,
              split.micro_batch_size);
}

}  // namespace

StepPlan plan_step(const Sampler& sampler, SamplerPosition where, const StepSplit& split) {
  check_split(split);
  const int64_t n = sampler.size();
  if (split.drop_last && n - where.position < split.train_batch_size) where = {where.epoch + 1, 0};
  StepPlan plan;
  plan.n_samples = std::min(split.train_batch_size, n - where.position);
  FERRY_CHECK(!split.drop_last || plan.n_samples == split.train_batch_size,
              "{} samples make no step of {}", n, split.train_batch_size);
  for (int64_t i = 0; i < plan.n_samples; ++i) {
    if (i % split.micro_batch_size == 0) plan.micro_batches.emplace_back();
    plan.micro_batches.back().push_back(sampler.at(where.epoch, where.position + i));
  }
  plan.next = {where.epoch, where.position + plan.n_samples};
  const int64_t left = n - plan.next.position;
  if (left == 0 || (split.drop_last && left < split.train_batch_size))
    plan.next = {where.epoch + 1, 0};
  return plan;
}

int64_t steps_per_epoch(int64_t n_samples, const StepSplit& split) {
  check_split(split);
  return (n_samples + (split.drop_last ? 0 : split.train_batch_size - 1)) / split.train_batch_size;
}

SamplerPosition position_of_step(int64_t n_samples, int64_t step, const StepSplit& split) {
  const int64_t n_steps = steps_per_epoch(n_samples, split);
  FERRY_CHECK(n_steps > 0 && step >= 0, "step {} of {} an epoch", step, n_steps);
  return {step / n_steps, step % n_steps * split.train_batch_size};
}

std::vector<std::vector<int64_t>> plan_pass(int64_t n_samples, int64_t micro_batch_size) {
  FERRY_CHECK(micro_batch_size > 0, "micro_batch_size is {}", micro_batch_size);
  std::vector<std::vector<int64_t>> batches;
  for (int64_t begin = 0; begin < n_samples; begin += micro_batch_size) {
    batches.emplace_back(static_cast<size_t>(std::min(micro_batch_size, n_samples - begin)));
    std::iota(batches.back().begin(), batches.back().end(), begin);
  }
  return batches;
}

std::vector<int64_t> micro_batch_token_counts(const Sampler& sampler,
                                              std::span<const int32_t> lengths,
                                              const StepSplit& split,
                                              int64_t n_steps) {
  std::vector<int64_t> counts;
  SamplerPosition where;
  for (int64_t step = 0; step < n_steps; ++step) {
    StepPlan plan = plan_step(sampler, where, split);
    for (const auto& samples : plan.micro_batches) {
      int64_t n_tokens = 0;
      for (int64_t sample : samples)
        n_tokens += lengths[static_cast<size_t>(sample)];
      counts.push_back(n_tokens);
    }
    where = plan.next;
  }
  return counts;
}

int64_t max_micro_batch_tokens(std::span<const int32_t> lengths, int64_t micro_batch_size) {
  std::vector<int32_t> longest(lengths.begin(), lengths.end());
  const auto n = std::min(longest.size(), static_cast<size_t>(micro_batch_size));
  const auto middle = longest.begin() + static_cast<std::ptrdiff_t>(n);
  std::partial_sort(longest.begin(), middle, longest.end(), std::greater<>());
  return std::accumulate(longest.begin(), middle, int64_t{0});
}

int64_t attended_tokens(std::span<const int32_t> lengths) {
  double sum = 0, squares = 0;
  for (const int32_t length : lengths) {
    sum += length;
    squares += static_cast<double>(length) * length;
  }
  return static_cast<int64_t>(squares / std::max(1.0, sum));
}

LengthsInOrder::LengthsInOrder(const Sampler& sampler,
                               std::span<const int32_t> lengths,
                               int64_t n_epochs)
    : n_(sampler.size()) {
  lengths_.reserve(static_cast<size_t>(n_ * n_epochs));
  for (int64_t epoch = 0; epoch < n_epochs; ++epoch)
    for (int64_t i = 0; i < n_; ++i)
      lengths_.push_back(lengths[static_cast<size_t>(sampler.at(epoch, i))]);
}

LengthsInOrder::LengthsInOrder(std::vector<int32_t> lengths)
    : lengths_(std::move(lengths)), n_(static_cast<int64_t>(lengths_.size())) {}

MicroBatchTokens LengthsInOrder::of_micro_batches(const StepSplit& split) const {
  check_split(split);
  MicroBatchTokens tokens;
  int64_t n_batches = 0, sum = 0;
  // As plan_step() cuts them: neither an epoch's end nor a step's is inside a micro-batch. What
  // drop_last leaves out is counted too; it only adds.
  for (size_t epoch = 0; epoch < lengths_.size(); epoch += static_cast<size_t>(n_))
    for (int64_t step = 0; step < n_; step += split.train_batch_size) {
      const int64_t end = std::min(n_, step + split.train_batch_size);
      for (int64_t first = step; first < end; first += split.micro_batch_size) {
        const auto from = lengths_.begin() + static_cast<std::ptrdiff_t>(epoch) + first;
        const int64_t n =
            std::accumulate(from, from + std::min(split.micro_batch_size, end - first), int64_t{0});
        tokens.most = std::max(tokens.most, n);
        sum += n;
        ++n_batches;
      }
    }
  tokens.mean = static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(1, n_batches));
  return tokens;
}

std::vector<int64_t> choose_token_sizes(int64_t max_tokens,
                                        std::span<const int64_t> counts,
                                        int64_t n_max,
                                        int64_t multiple) {
  FERRY_CHECK(max_tokens > 0 && n_max > 0 && multiple > 0, "{} tokens, {} sizes, multiples of {}",
              max_tokens, n_max, multiple);
  // Candidates are the multiples that some micro-batch rounds up to, and the maximum. cost[k][j]:
  // the fewest tokens added when candidates up to j are served by k sizes, the largest of which is
  // candidate j.
  std::vector<int64_t> rounded;
  for (int64_t count : counts) {
    FERRY_CHECK(count <= max_tokens, "a micro-batch of {} tokens, at most {} expected", count,
                max_tokens);
    rounded.push_back(std::max(multiple, round_up(count, multiple)));
  }
  std::sort(rounded.begin(), rounded.end());
  std::vector<int64_t> sizes = rounded;
  sizes.push_back(round_up(max_tokens, multiple));
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  const size_t n = sizes.size();
  if (static_cast<int64_t>(n) <= n_max) return sizes;

  std::vector<int64_t> n_upto(n + 1),
      sum_upto(n + 1);  // micro-batches, and their tokens, below candidate i
  for (size_t i = 0, k = 0; i < n; ++i) {
    n_upto[i + 1] = n_upto[i], sum_upto[i + 1] = sum_upto[i];
    for (; k < rounded.size() && rounded[k] == sizes[i]; ++k)
      ++n_upto[i + 1], sum_upto[i + 1] += rounded[k];
  }
  const auto added = [&](size_t first,
                         size_t last) {  // candidates first..last all rounded up to sizes[last]
    return (n_upto[last + 1] - n_upto[first]) * sizes[last] -
           (sum_upto[last + 1] - sum_upto[first]);
  };
  const auto n_sizes = static_cast<size_t>(n_max);
  std::vector<std::vector<int64_t>> cost(n_sizes, std::vector<int64_t>(n));
  std::vector<std::vector<size_t>> first_of(n_sizes, std::vector<size_t>(n));
  for (size_t j = 0; j < n; ++j)
    cost[0][j] = added(0, j);
  for (size_t k = 1; k < n_sizes; ++k)
    for (size_t j = 0; j < n; ++j) {
      cost[k][j] = cost[k - 1][j];  // no use for another size
      first_of[k][j] = n;
      for (size_t first = 1; first <= j; ++first)
        if (int64_t total = cost[k - 1][first - 1] + added(first, j); total < cost[k][j]) {
          cost[k][j] = total;
          first_of[k][j] = first;
        }
    }
  std::vector<int64_t> chosen;
  for (size_t k = n_sizes, j = n - 1; k-- > 0;) {
    if (k > 0 && first_of[k][j] == n) continue;
    chosen.push_back(sizes[j]);
    if (k == 0) break;
    j = first_of[k][j] - 1;
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

int64_t round_up_sequences(int64_t n) {
  int64_t count = 4;
  while (count < n)
    count = count + count / 2 >= n ? count + count / 2 : 2 * count;
  return n <= 4 ? n : count;
}

}  // namespace ferry
