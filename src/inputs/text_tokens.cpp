#include "src/inputs/text_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "src/base/error.h"
#include "src/data/sampler.h"

namespace ferry {
namespace {

/** Epochs whose order of texts is looked at, more than a run mostly has: what it is begun with is
 * enough for one that is made longer. */
int64_t epochs_looked_at(int64_t n_samples) {
  constexpr int64_t kSamples = 8'000'000, kEpochs_max = 100;
  return std::clamp<int64_t>(kSamples / n_samples, 1, kEpochs_max);
}

LengthsInOrder trained_in_order(const RunTexts& texts) {
  if (texts.trained.empty()) return LengthsInOrder({});
  const auto n = static_cast<int64_t>(texts.trained.size());
  return {Sampler(n, texts.data_seed), texts.trained, epochs_looked_at(n)};
}

/** Plans are made of copies of a request, and ask for few sizes many times; searches in several
 * threads share it. */
class KnownTexts {
 public:
  explicit KnownTexts(const RunTexts& texts)
      : texts_(texts), trained_(trained_in_order(texts)), evaluated_(texts.evaluated) {}

  TextTokens tokens_of(int64_t train_batch_size, int64_t micro_batch_size) {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = asked_.try_emplace({train_batch_size, micro_batch_size});
    if (is_new) found->second = count(train_batch_size, micro_batch_size);
    return found->second;
  }

 private:
  TextTokens count(int64_t train_batch_size, int64_t micro_batch_size) const {
    const MicroBatchTokens passed = evaluated_.of_micro_batches(
        {.train_batch_size = micro_batch_size, .micro_batch_size = micro_batch_size});
    const int64_t kept = texts_.token_sizes.empty() ? 0 : texts_.token_sizes.back();
    if (texts_.trained.empty())
      return {.most = std::max(passed.most, kept),
              .typical = static_cast<int64_t>(passed.mean),
              .attended =
                  attended_tokens(texts_.evaluated_sequences.empty() ? texts_.evaluated
                                                                     : texts_.evaluated_sequences),
              .n_seqs = n_sequences(micro_batch_size)};
    const MicroBatchTokens tokens = trained_.of_micro_batches(
        {.train_batch_size = train_batch_size, .micro_batch_size = micro_batch_size});
    const bool sees_all =
        texts_.n_epochs <= epochs_looked_at(static_cast<int64_t>(texts_.trained.size()));
    const int64_t most =
        sees_all ? tokens.most : max_micro_batch_tokens(texts_.trained, micro_batch_size);
    return {.most = std::max({most, passed.most, kept}),
            .typical = static_cast<int64_t>(tokens.mean),
            .attended = attended_tokens(
                texts_.trained_sequences.empty() ? texts_.trained : texts_.trained_sequences),
            .n_seqs = n_sequences(micro_batch_size)};
  }

  /** Those of the samples with the most, should they meet, and the empty ones that collate() adds;
   * 0 where nothing is packed. */
  int64_t n_sequences(int64_t micro_batch_size) const {
    const int64_t most = std::max(max_micro_batch_tokens(texts_.trained_packs, micro_batch_size),
                                  max_micro_batch_tokens(texts_.evaluated_packs, micro_batch_size));
    // The tail has no more sequences than there are samples.
    return most == 0 ? 0 : round_up_sequences(most + micro_batch_size);
  }

  RunTexts texts_;
  LengthsInOrder trained_, evaluated_;
  std::mutex mutex_;
  std::map<std::pair<int64_t, int64_t>, TextTokens> asked_;
};

}  // namespace

RunTexts run_texts_of(const TokenizedDataset& train, const TokenizedDataset& eval) {
  RunTexts texts = {.trained = train.lengths(), .evaluated = eval.lengths()};
  for (const auto& [data, packs, sequences] :
       {std::tuple(&train, &texts.trained_packs, &texts.trained_sequences),
        std::tuple(&eval, &texts.evaluated_packs, &texts.evaluated_sequences)}) {
    if (!data->is_packed()) continue;
    *packs = data->pack_sizes();
    *sequences = data->sequence_lengths();
  }
  return texts;
}

int64_t longest_text(std::span<const int32_t> trained,
                     std::span<const int32_t> evaluated,
                     int64_t max_length) {
  const int64_t longest =
      std::max(max_micro_batch_tokens(trained, 1), max_micro_batch_tokens(evaluated, 1));
  return longest == 0 ? max_length : std::min(longest, max_length);
}

std::string note_of_lengths(int64_t longest, int64_t max_length) {
  return fmt::format("the longest text has {0} tokens: planned for {0}, not for {1}", longest,
                     max_length);
}

std::function<TextTokens(int64_t, int64_t)> text_tokens_of(const RunTexts& texts) {
  const auto is_full = [&](int32_t length) { return length == texts.max_length; };
  const bool is_packed = !texts.trained_packs.empty() || !texts.evaluated_packs.empty();
  if (!is_packed && std::ranges::all_of(texts.trained, is_full) &&
      std::ranges::all_of(texts.evaluated, is_full))
    return nullptr;
  return [known = std::make_shared<KnownTexts>(texts)](int64_t train_batch_size,
                                                       int64_t micro_batch_size) {
    return known->tokens_of(train_batch_size, micro_batch_size);
  };
}

std::vector<int64_t> choose_sizes(const RunTexts& texts,
                                  const StepSplit& split,
                                  int64_t largest_tokens,
                                  int64_t n_sizes_max,
                                  int sp_size) {
  constexpr int64_t kStepsLookedAt = 500;
  if (!texts.token_sizes.empty()) {
    std::vector<int64_t> sizes = texts.token_sizes;
    std::erase_if(sizes, [&](int64_t size) { return size > largest_tokens; });
    for (const int64_t size : sizes)
      if (size % token_multiple(sp_size) != 0)
        throw Error(
            Fault::usage, "config.sp_size",
            fmt::format("sp_size is {}, and the run's micro-batches of {} tokens have no such "
                        "parts of whole eights",
                        sp_size, size),
            "choose sp_size 1, 2, 4 or 8: the sizes are those that the run began with");
    if (sizes.empty() || sizes.back() < largest_tokens) sizes.push_back(largest_tokens);
    return sizes;
  }
  const bool trains = !texts.trained.empty();
  const std::vector<int32_t>& lengths = trains ? texts.trained : texts.evaluated;
  if (lengths.empty()) return {largest_tokens};
  const auto n = static_cast<int64_t>(lengths.size());
  // This stays within the epochs that largest_tokens counts.
  const int64_t n_steps = std::min(kStepsLookedAt, epochs_looked_at(n) * steps_per_epoch(n, split));
  const Sampler sampler(n, texts.data_seed, /*shuffle=*/trains);
  return choose_token_sizes(largest_tokens,
                            micro_batch_token_counts(sampler, lengths, split, n_steps), n_sizes_max,
                            token_multiple(sp_size));
}

std::vector<int64_t> parse_token_sizes(const std::string& text) {
  std::vector<int64_t> sizes;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    const bool is_good = error == std::errc() && size > 0 && size % kTokenMultiple == 0 &&
                         (sizes.empty() || size > sizes.back());
    if (!is_good || (next != end && *next != ','))
      throw Error(Fault::usage, "config.token_sizes", fmt::format("'{}' are no sizes", text),
                  "auto, or ascending multiples of 64 with commas between them: 64,448,512");
    sizes.push_back(size);
    if (next == end) return sizes;
    at = next + 1;
  }
}

}  // namespace ferry
