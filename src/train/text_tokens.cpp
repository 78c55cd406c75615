#include "src/train/text_tokens.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "src/data/sampler.h"
#include "src/data/step_plan.h"

namespace ferry {
namespace {

/** Epochs whose order of texts is looked at. The same for every length of a run, so that one that
 * is made longer keeps its token sizes, which are part of its identity. */
int64_t epochs_looked_at(int64_t n_samples) {
  constexpr int64_t kSamples = 8'000'000, kEpochs_max = 100;
  return std::clamp<int64_t>(kSamples / n_samples, 1, kEpochs_max);
}

int64_t epochs_of_run(const Job& job) {
  const auto& config = job.config;
  const StepSplit split = {.train_batch_size = config.integer("train_batch_size")};
  if (const int64_t max_steps = config.integer("max_steps"); max_steps >= 0) {
    const int64_t n = steps_per_epoch(job.train.size(), split);
    return (max_steps + n - 1) / n;
  }
  return static_cast<int64_t>(std::ceil(config.number("num_train_epochs")));
}

/** Texts in the orders in which they are taken. */
struct KnownTexts {
  LengthsInOrder trained, evaluated;
  bool looks_at_all;  ///< no epoch is left out
  std::vector<int32_t> lengths;
  std::map<std::pair<int64_t, int64_t>, TextTokens> asked = {};

  TextTokens tokens_of(int64_t train_batch_size, int64_t micro_batch_size) {
    const auto [found, is_new] = asked.try_emplace({train_batch_size, micro_batch_size});
    if (is_new) found->second = count(train_batch_size, micro_batch_size);
    return found->second;
  }

 private:
  TextTokens count(int64_t train_batch_size, int64_t micro_batch_size) const {
    const MicroBatchTokens tokens = trained.of_micro_batches(
        {.train_batch_size = train_batch_size, .micro_batch_size = micro_batch_size});
    const MicroBatchTokens passed = evaluated.of_micro_batches(
        {.train_batch_size = micro_batch_size, .micro_batch_size = micro_batch_size});
    double sum = 0, squares = 0;
    for (const int32_t length : lengths) {
      sum += length;
      squares += static_cast<double>(length) * length;
    }
    const int64_t most =
        looks_at_all ? tokens.most : max_micro_batch_tokens(lengths, micro_batch_size);
    return {.most = std::max(most, passed.most),
            .typical = static_cast<int64_t>(tokens.mean),
            .attended = static_cast<int64_t>(squares / sum)};
  }
};

}  // namespace

uint64_t data_seed_of(const config::Config& config) {
  return static_cast<uint64_t>(config.maybe_integer("data_seed").value_or(config.integer("seed")));
}

std::function<TextTokens(int64_t, int64_t)> text_tokens_of(const Job& job, bool trains) {
  const TokenizedDataset& data = trains ? job.train : job.eval;
  const std::vector<int32_t> lengths = data.lengths();
  if (lengths.empty() || std::ranges::count(lengths, lengths.front()) == std::ssize(lengths))
    return nullptr;
  // Plans are made of copies of the request, and ask for few sizes many times.
  auto known = std::make_shared<KnownTexts>(
      KnownTexts{.trained = trains ? LengthsInOrder(Sampler(data.size(), data_seed_of(job.config)),
                                                    lengths, epochs_looked_at(data.size()))
                                   : LengthsInOrder(lengths),
                 .evaluated = LengthsInOrder(trains ? job.eval.lengths() : std::vector<int32_t>()),
                 .looks_at_all = !trains || epochs_of_run(job) <= epochs_looked_at(data.size()),
                 .lengths = lengths});
  return [known](int64_t train_batch_size, int64_t micro_batch_size) {
    return known->tokens_of(train_batch_size, micro_batch_size);
  };
}

std::vector<int64_t> token_sizes_of(const Job& job, bool trains) {
  constexpr int64_t kStepsLookedAt = 500, kSizes_max = 8, kMultiple = 64;
  const TokenizedDataset& data = trains ? job.train : job.eval;
  if (data.size() == 0) return {job.plan.largest.tokens};
  const Sampler sampler(data.size(), data_seed_of(job.config), /*shuffle=*/trains);
  const auto counts = micro_batch_token_counts(sampler, data.lengths(), job.split, kStepsLookedAt);
  return choose_token_sizes(job.plan.largest.tokens, counts, kSizes_max, kMultiple);
}

}  // namespace ferry
