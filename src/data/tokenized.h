#pragma once
// A dataset after the tokenizer: every token in one flat array, so that its bytes are known and a
// sample is a slice. Filled once before step 1; batches are cut from it by src/data/batch.h.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/data/example.h"
#include "src/data/read/reader.h"

namespace ferry {

/** A sample as the model reads it, special tokens included. */
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
  /** A sample of the example at that place; places do not fall. */
  void add(const TokenizedExample& sample, int64_t example);

  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t n_tokens() const { return offsets_.back(); }
  /** Samples that were cut to the length limit. */
  int64_t n_truncated() const { return n_truncated_; }
  /** Memory it takes; the tag is `dataset`. */
  int64_t bytes() const;

  std::span<const int32_t> ids(int64_t sample) const { return slice(ids_, offsets_, sample); }
  std::span<const uint8_t> type_ids(int64_t sample) const {
    return slice(type_ids_, offsets_, sample);
  }
  /** Tokens of every sample. */
  std::vector<int32_t> lengths() const;
  /** A hash of every token, type and label in their order: the same data through the same
   * tokenizer, and only that, gives the same. */
  uint64_t fingerprint() const;
  /** The largest type of a token; 0 of no tokens. */
  int32_t max_type_id() const;

  /** False where the examples had no labels. */
  bool has_labels() const { return has_labels_; }
  void set_has_labels(bool has_labels) { has_labels_ = has_labels; }
  std::span<const int32_t> labels(int64_t sample) const {
    return slice(labels_, label_offsets_, sample);
  }
  std::span<const float> values(int64_t sample) const {
    return slice(values_, value_offsets_, sample);
  }
  /** The place of the example that the sample was cut from. */
  int64_t example_of(int64_t sample) const { return examples_[static_cast<size_t>(sample)]; }

 private:
  /** Where the parts of each sample begin, and where the last one ends: (n + 1). */
  using OffsetList = std::vector<int64_t>;

  template <typename T>
  static std::span<const T> slice(const std::vector<T>& all,
                                  const OffsetList& offsets,
                                  int64_t sample) {
    const auto begin = static_cast<size_t>(offsets[static_cast<size_t>(sample)]);
    return std::span(all).subspan(
        begin, static_cast<size_t>(offsets[static_cast<size_t>(sample) + 1]) - begin);
  }

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
};

/** Tokenizes the examples in order, on n_threads threads; the result does not depend on their
 * number. The first exception of `tokenize` is rethrown. Takes an example that yields no token for
 * a data fault. */
TokenizedDataset tokenize_dataset(const Dataset& dataset,
                                  const Tokenize& tokenize,
                                  int n_threads = 1);

}  // namespace ferry
