#pragma once
// A dataset after the tokenizer: every token in one flat array, so that its bytes are known and a
// sequence is a slice. Filled once before step 1; batches are cut from it by src/data/batch.h.
// A sample, which samplers draw, is one sequence, or where sequences were packed several.

#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "src/data/example.h"
#include "src/data/read/reader.h"

namespace ferry {

/** A sequence as the model reads it, special tokens included. */
struct TokenizedExample {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // 0 or 1, as many as ids; empty: all 0
  std::vector<int32_t> labels;    // as many as the task gives a sample
  std::vector<float> values;      // the same
  bool truncated = false;         // cut to the length limit
};

/** Text to tokens: the task and the tokenizer as this room sees them. Appends the samples of an
 * example, at least one. Called from several threads at once when n_threads > 1. */
using Tokenize = std::function<void(const Example&, std::vector<TokenizedExample>&)>;

class TokenizedDataset {
 public:
  /** A sequence of the example at that place, as a sample; places do not fall. */
  void add(const TokenizedExample& sequence, int64_t example);

  /** Samples. */
  int64_t size() const { return packs_.empty() ? n_sequences() : std::ssize(packs_) - 1; }
  int64_t n_sequences() const { return std::ssize(offsets_) - 1; }
  /** The places of a sample's sequences: [begin, end). */
  std::pair<int64_t, int64_t> sequences_of(int64_t sample) const {
    if (packs_.empty()) return {sample, sample + 1};
    const auto at = static_cast<size_t>(sample);
    return {packs_[at], packs_[at + 1]};
  }
  bool is_packed() const { return !packs_.empty(); }
  int64_t n_tokens() const { return offsets_.back(); }
  int64_t n_tokens(int64_t sample) const {
    const auto [begin, end] = sequences_of(sample);
    return offsets_[static_cast<size_t>(end)] - offsets_[static_cast<size_t>(begin)];
  }
  /** Sequences that were cut to the length limit. */
  int64_t n_truncated() const { return n_truncated_; }
  /** Memory it takes; the tag is `dataset`. */
  int64_t bytes() const;

  std::span<const int32_t> ids(int64_t sequence) const { return slice(ids_, offsets_, sequence); }
  std::span<const uint8_t> type_ids(int64_t sequence) const {
    return slice(type_ids_, offsets_, sequence);
  }
  /** Tokens of every sample. */
  std::vector<int32_t> lengths() const;
  /** Tokens of every sequence. */
  std::vector<int32_t> sequence_lengths() const;
  /** Sequences of every sample; empty where each has one. */
  std::vector<int32_t> pack_sizes() const;
  /** A hash of every token, type and label in their order: the same data through the same
   * tokenizer, and only that, gives the same. */
  uint64_t fingerprint() const;
  /** The largest type of a token; 0 of no tokens. */
  int32_t max_type_id() const;

  /** False where the examples had no labels. */
  bool has_labels() const { return has_labels_; }
  void set_has_labels(bool has_labels) { has_labels_ = has_labels; }
  std::span<const int32_t> labels(int64_t sequence) const {
    return slice(labels_, label_offsets_, sequence);
  }
  std::span<const float> values(int64_t sequence) const {
    return slice(values_, value_offsets_, sequence);
  }
  /** The place of the example that the sequence was cut from. */
  int64_t example_of(int64_t sequence) const { return examples_[static_cast<size_t>(sequence)]; }

  /** The same sequences in samples of at most max_tokens tokens: in their order each goes to the
   * sample with the least room that has enough, or begins one. Samples stand in the order of their
   * first sequences, and the sequences of each in their own. */
  TokenizedDataset packed(int64_t max_tokens) const;

 private:
  /** Where the parts of each sequence begin, and where the last one ends: (n + 1). */
  using OffsetList = std::vector<int64_t>;

  template <typename T>
  static std::span<const T> slice(const std::vector<T>& all,
                                  const OffsetList& offsets,
                                  int64_t sequence) {
    const auto begin = static_cast<size_t>(offsets[static_cast<size_t>(sequence)]);
    return std::span(all).subspan(
        begin, static_cast<size_t>(offsets[static_cast<size_t>(sequence) + 1]) - begin);
  }

  /** Adds a sequence of another dataset. */
  void add(const TokenizedDataset& from, int64_t sequence);

  bool has_labels_ = false;
  int64_t n_truncated_ = 0;
  OffsetList offsets_ = {0};
  std::vector<int32_t> ids_;       // (n_tokens)
  std::vector<uint8_t> type_ids_;  // (n_tokens)
  OffsetList label_offsets_ = {0};
  std::vector<int32_t> labels_;
  OffsetList value_offsets_ = {0};
  std::vector<float> values_;
  std::vector<int64_t> examples_;  // (n)
  OffsetList packs_;               // the first sequence of each sample, and n; empty: each is one
};

/** Tokenizes the examples in order, on n_threads threads; the result does not depend on their
 * number. The first exception of `tokenize` is rethrown. Takes an example that yields no token for
 * a data fault. */
TokenizedDataset tokenize_dataset(const Dataset& dataset,
                                  const Tokenize& tokenize,
                                  int n_threads = 1);

}  // namespace ferry
