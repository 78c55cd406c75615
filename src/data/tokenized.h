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

/** One example as the model reads it, special tokens included. */
struct TokenizedExample {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // 0 or 1, as many as ids; empty: all 0
  bool truncated = false;         // cut to the length limit
};

/** Text to tokens: the tokenizer as this room sees it. Called from several threads at once when
 * n_threads > 1. */
using Tokenize = std::function<TokenizedExample(const Example&)>;

class TokenizedDataset {
 public:
  explicit TokenizedDataset(ProblemType problem = ProblemType::unlabelled, int32_t n_labels = 0)
      : problem_(problem), n_labels_(n_labels) {}

  void add(const TokenizedExample& tokens, const Label& label);

  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t n_tokens() const { return offsets_.back(); }
  /** Samples that were cut to the length limit. */
  int64_t n_truncated() const { return n_truncated_; }
  /** Memory it takes; the tag is `dataset`. */
  int64_t bytes() const;

  std::span<const int32_t> ids(int64_t sample) const { return slice(ids_, sample); }
  std::span<const uint8_t> type_ids(int64_t sample) const { return slice(type_ids_, sample); }
  /** Tokens of every sample. */
  std::vector<int32_t> lengths() const;
  /** A hash of every token, type and label in their order: the same data through the same
   * tokenizer, and only that, gives the same. */
  uint64_t fingerprint() const;
  /** The largest type of a token; 0 of no tokens. */
  int32_t max_type_id() const;

  ProblemType problem() const { return problem_; }
  int32_t n_labels() const { return n_labels_; }
  int32_t class_id(int64_t sample) const { return class_ids_[static_cast<size_t>(sample)]; }
  float value(int64_t sample) const { return values_[static_cast<size_t>(sample)]; }
  /** The classes of a multi-label sample, ascending. */
  std::span<const int32_t> classes(int64_t sample) const;

 private:
  template <typename T>
  std::span<const T> slice(const std::vector<T>& all, int64_t sample) const {
    const auto begin = static_cast<size_t>(offsets_[static_cast<size_t>(sample)]);
    return std::span(all).subspan(
        begin, static_cast<size_t>(offsets_[static_cast<size_t>(sample) + 1]) - begin);
  }

  ProblemType problem_;
  int32_t n_labels_;
  int64_t n_truncated_ = 0;
  std::vector<int64_t> offsets_ = {0};  // (n + 1)
  std::vector<int32_t> ids_;            // (n_tokens)
  std::vector<uint8_t> type_ids_;       // (n_tokens)
  std::vector<int32_t> class_ids_;      // single_label: (n)
  std::vector<float> values_;           // regression: (n)
  std::vector<int64_t> class_offsets_;  // multi_label: (n + 1)
  std::vector<int32_t> classes_;
};

/** Tokenizes the samples `which` (all when empty) in order, on n_threads threads; the result does
 * not depend on their number. The first exception of `tokenize` is rethrown. Takes an example that
 * yields no token for a data fault. */
TokenizedDataset tokenize_dataset(const Dataset& dataset,
                                  const Tokenize& tokenize,
                                  std::span<const int64_t> which = {},
                                  int n_threads = 1);

}  // namespace ferry
