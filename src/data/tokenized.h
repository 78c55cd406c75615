#pragma once
// A dataset after the tokenizer: a view of a TokenStore (src/data/tokens/token_store.h), which may
// lie in memory or in a mapped file. The view says which sequences belong to it, in which order,
// and which of them make a sample; batches are cut from it by src/data/batch.h. A sample, which
// samplers draw, is one sequence, or where sequences were packed several.

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "src/data/read/reader.h"
#include "src/data/tokenized_example.h"
#include "src/data/tokens/token_store.h"

namespace ferry {

class TokenizedDataset {
 public:
  /** Empty. */
  TokenizedDataset();
  /** All sequences as they lie in the store. */
  explicit TokenizedDataset(std::shared_ptr<const TokenStore> store);

  /** Samples. */
  int64_t size() const { return is_packed() ? std::ssize(packs_) - 1 : n_sequences(); }
  int64_t n_sequences() const { return is_selection_ ? std::ssize(order_) : store_->n_sequences(); }
  /** The examples that its sequences were cut from. */
  int64_t n_examples() const { return n_examples_; }
  /** The places of a sample's sequences: [begin, end). */
  std::pair<int64_t, int64_t> sequences_of(int64_t sample) const {
    if (!is_packed()) return {sample, sample + 1};
    const auto at = static_cast<size_t>(sample);
    return {packs_[at], packs_[at + 1]};
  }
  bool is_packed() const { return !packs_.empty(); }
  int64_t n_tokens() const;
  int64_t n_tokens(int64_t sample) const;
  /** Sequences that were cut to the length limit. */
  int64_t n_truncated() const;
  /** Memory that the view takes, and with its store: the tag is `dataset`. */
  int64_t view_bytes() const;
  int64_t bytes() const { return view_bytes() + store_->held_bytes(); }

  /** Tokens of a sequence. */
  int64_t n_ids(int64_t sequence) const { return entry(sequence).n_ids; }
  /** It was cut to the length limit. */
  bool is_truncated(int64_t sequence) const { return entry(sequence).is_truncated(); }
  /** Appends the ids and the types of a sequence, (n_ids) each. */
  void append_tokens(int64_t sequence,
                     std::vector<int32_t>& ids,
                     std::vector<int32_t>& types) const {
    store_->append_tokens(place(sequence), ids, types);
  }
  std::vector<int32_t> ids(int64_t sequence) const;
  std::vector<int32_t> type_ids(int64_t sequence) const;
  /** Tokens of every sample. */
  std::vector<int32_t> lengths() const;
  /** Tokens of every sequence. */
  std::vector<int32_t> sequence_lengths() const;
  /** Sequences of every sample; empty where each has one. */
  std::vector<int32_t> pack_sizes() const;
  /** A hash of every token, type and label in their order: the same data through the same
   * tokenizer, and only that, gives the same, wherever it lies. */
  uint64_t fingerprint() const;
  /** The largest type of a token in its store; 0 of no tokens. */
  int32_t max_type_id() const { return store_->facts().max_type_id; }

  /** False where the examples had no labels. */
  bool has_labels() const { return store_->facts().has_labels; }
  std::span<const int32_t> labels(int64_t sequence) const {
    return store_->labels(place(sequence));
  }
  std::span<const float> values(int64_t sequence) const { return store_->values(place(sequence)); }
  /** The place, in the whole of the data, of the example that the sequence was cut from. */
  int64_t example_of(int64_t sequence) const { return entry(sequence).example; }
  /** The example of a place, where examples are kept. */
  Example example(int64_t place) const { return store_->example(place); }

  const TokenStore& store() const { return *store_; }

  /** The sequences of the examples at these places, which ascend. Not of a view that is packed. */
  TokenizedDataset of_examples(std::span<const int64_t> places) const;
  /** The same sequences in samples of at most max_tokens tokens: in their order each goes to the
   * sample with the least room that has enough, or begins one. Samples stand in the order of their
   * first sequences, and the sequences of each in their own. */
  TokenizedDataset packed(int64_t max_tokens) const;
  /** The same sequences in samples of two, which follow each other. */
  TokenizedDataset in_pairs() const;

  /** Gives each sequence the number that the first weights had for it, by its place in this view.
   */
  void set_references(std::shared_ptr<const std::vector<float>> references);
  /** The reference of a sequence; 0 where none are set. */
  float reference(int64_t sequence) const {
    return references_ ? (*references_)[static_cast<size_t>(sequence)] : 0;
  }

 private:
  /** The place in the store. */
  int64_t place(int64_t sequence) const {
    return is_selection_ ? order_[static_cast<size_t>(sequence)] : sequence;
  }
  const SequenceEntry& entry(int64_t sequence) const { return store_->entry(place(sequence)); }

  std::shared_ptr<const TokenStore> store_;
  int64_t n_examples_ = 0;
  bool is_selection_ = false;   // else all sequences of the store, in their order
  std::vector<int64_t> order_;  // the places of the sequences
  std::vector<int64_t> packs_;  // the first sequence of each sample, and n; empty: each is one
  std::shared_ptr<const std::vector<float>> references_;
};

/** Sequences in memory, each of an example of its own. */
TokenizedDataset dataset_of(std::span<const TokenizedExample> sequences);

/** A dataset that is in memory, to tokens in memory, with its examples. As tokenize_examples(). */
TokenizedDataset tokenize_dataset(const Dataset& dataset,
                                  const Tokenize& tokenize,
                                  int n_threads = 1);

}  // namespace ferry
