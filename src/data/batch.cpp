#include "src/data/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "src/base/error.h"
#include "src/data/hash.h"
#include "src/data/step_plan.h"

namespace ferry {
namespace {

void append_sequence(MicroBatch& batch, int64_t length, int32_t first_position = 0) {
  const size_t end = batch.position_ids.size() + static_cast<size_t>(length);
  const auto begin = batch.position_ids.end() - batch.position_ids.begin();
  batch.position_ids.resize(end);
  std::iota(batch.position_ids.begin() + begin, batch.position_ids.end(), first_position);
  batch.cu_seqlens.push_back(static_cast<int32_t>(end));
  batch.max_len = std::max(batch.max_len, static_cast<int32_t>(length));
}

void clear(MicroBatch& batch) {
  for (auto* ints : {&batch.input_ids, &batch.type_ids, &batch.position_ids, &batch.cu_seqlens,
                     &batch.labels, &batch.label_rows})
    ints->clear();
  batch.values.clear();
  batch.preferences.clear();
  batch.samples.clear();
  batch.cu_seqlens.push_back(0);
  batch.max_len = 0;
  batch.n_real_tokens = batch.n_real_seqs = batch.n_label_items = 0;
  batch.n_end_items = 0;
}

int64_t longest_sequence(const TokenizedDataset& from, std::span<const int64_t> samples) {
  int64_t longest = 0;
  for (const int64_t sample : samples) {
    const auto [begin, end] = from.sequences_of(sample);
    for (int64_t sequence = begin; sequence < end; ++sequence)
      longest = std::max(longest, from.n_ids(sequence));
  }
  return longest;
}

}  // namespace

FirstPosition positions_in_batch(const TokenizedDataset& from,
                                 std::span<const std::vector<int64_t>> batch,
                                 int64_t long_from,
                                 int32_t mark) {
  if (long_from == 0) return {};
  const bool is_long = std::ranges::any_of(batch, [&](const std::vector<int64_t>& samples) {
    return longest_sequence(from, samples) > long_from;
  });
  return [first = is_long ? mark : 0](int64_t) { return first; };
}

FirstPosition positions_in_order(const TokenizedDataset& from, int64_t long_from, int32_t mark) {
  if (long_from == 0) return {};
  // Samples come in order, so the last group's answer serves its other samples too.
  return [&from, long_from, mark, known_begin = int64_t{-1}, first = 0](int64_t sample) mutable {
    const int64_t begin = sample / kSamplesSeenTogether * kSamplesSeenTogether;
    if (begin == known_begin) return first;
    std::vector<int64_t> together(
        static_cast<size_t>(std::min(kSamplesSeenTogether, from.size() - begin)));
    std::iota(together.begin(), together.end(), begin);
    known_begin = begin;
    first = longest_sequence(from, together) > long_from ? mark : 0;
    return first;
  };
}

void collate(const TokenizedDataset& dataset,
             std::span<const int64_t> samples,
             std::span<const int64_t> sizes,
             int32_t pad_id,
             MicroBatch& batch,
             int64_t tail_length,
             const FirstPosition& first_position) {
  FERRY_CHECK(!samples.empty(), "a micro-batch without samples");
  clear(batch);
  for (int64_t sample : samples) {
    FERRY_CHECK(sample >= 0 && sample < dataset.size(), "sample {} of {}", sample, dataset.size());
    const auto [begin, end] = dataset.sequences_of(sample);
    const int32_t first = first_position ? first_position(sample) : 0;
    for (int64_t sequence = begin; sequence < end; ++sequence) {
      dataset.append_tokens(sequence, batch.input_ids, batch.type_ids);
      batch.samples.push_back(sequence);
      append_sequence(batch, dataset.n_ids(sequence), first);
    }
  }
  batch.n_real_tokens = batch.n_tokens();
  batch.n_real_seqs = batch.n_seqs();
  if (sizes.empty()) return;

  const auto size = std::lower_bound(sizes.begin(), sizes.end(), batch.n_real_tokens);
  FERRY_CHECK(size != sizes.end(), "a micro-batch of {} tokens, the largest size is {}",
              batch.n_real_tokens, sizes.back());
  // By default pieces of the longest sequence's length: attention's cost is set by the longest
  // sequence.
  const int64_t longest = tail_length > 0 ? tail_length : std::max<int64_t>(batch.max_len, 1);
  for (int64_t tail = *size - batch.n_real_tokens; tail > 0; tail -= longest)
    append_sequence(batch, std::min(tail, longest));
  if (dataset.is_packed())
    for (int64_t n = round_up_sequences(batch.n_seqs()); batch.n_seqs() < n;)
      append_sequence(batch, 0);
  batch.input_ids.resize(static_cast<size_t>(*size), pad_id);
  batch.type_ids.resize(static_cast<size_t>(*size), 0);
}

MicroBatch collate(const TokenizedDataset& dataset,
                   std::span<const int64_t> samples,
                   std::span<const int64_t> sizes,
                   int32_t pad_id) {
  MicroBatch batch;
  collate(dataset, samples, sizes, pad_id, batch);
  return batch;
}

void mask_tokens(MicroBatch& batch, const MaskOptions& options, const MaskKey& key) {
  FERRY_CHECK(options.share >= 0 && options.share <= 1 && options.vocab_size > 0,
              "share {}, vocabulary {}", options.share, options.vocab_size);
  const uint64_t stream = hash_key(key.seed, 0x3a5c, key.step, key.micro_batch);
  constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53
  const auto uniform = [&](uint64_t index) {
    return static_cast<double>(random_bits(stream, index) >> 11) * kUnit;
  };

  batch.labels.assign(batch.input_ids.size(), kNoLabel);
  batch.label_rows.clear();
  for (size_t i = 0; i < static_cast<size_t>(batch.n_real_tokens); ++i) {
    int32_t& id = batch.input_ids[i];
    if (std::find(options.special_ids.begin(), options.special_ids.end(), id) !=
        options.special_ids.end())
      continue;
    if (uniform(3 * i) >= options.share) continue;
    batch.labels[i] = id;
    batch.label_rows.push_back(static_cast<int32_t>(i));
    const double kind = uniform(3 * i + 1);
    if (kind < 0.8)
      id = options.mask_id;
    else if (kind < 0.9)
      id = static_cast<int32_t>(
          scale_below(random_bits(stream, 3 * i + 2), static_cast<uint64_t>(options.vocab_size)));
  }
  batch.n_label_items = static_cast<int64_t>(batch.label_rows.size());
}

void label_next_tokens(MicroBatch& batch) {
  batch.labels.assign(batch.input_ids.size(), kNoLabel);
  batch.label_rows.clear();
  batch.n_label_items = 0;
  for (size_t s = 0; s < static_cast<size_t>(batch.n_real_seqs); ++s) {
    const auto begin = static_cast<size_t>(batch.cu_seqlens[s]);
    const auto end = static_cast<size_t>(batch.cu_seqlens[s + 1]);
    if (begin == end) continue;
    std::copy(batch.input_ids.begin() + static_cast<int64_t>(begin) + 1,
              batch.input_ids.begin() + static_cast<int64_t>(end),
              batch.labels.begin() + static_cast<int64_t>(begin));
    batch.n_label_items += static_cast<int64_t>(end - begin) - 1;
  }
}

}  // namespace ferry
