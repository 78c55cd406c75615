#include "src/data/tokenized.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "src/base/error.h"
#include "src/data/hash.h"
#include "src/data/tokens/token_writer.h"
#include "src/data/tokens/tokenize.h"

namespace ferry {
namespace {

/** The sample of each sequence, by number, in the order of their first sequences. */
std::vector<int64_t> choose_packs(std::span<const int32_t> lengths, int64_t max_tokens) {
  std::vector<int64_t> pack_of;
  pack_of.reserve(lengths.size());
  int64_t n_packs = 0;
  std::map<int64_t, std::set<int64_t>> with_room;  // packs by the tokens that they still take
  for (const int64_t n : lengths) {
    FERRY_CHECK(n <= max_tokens, "a sequence of {} tokens, packs of {}", n, max_tokens);
    int64_t room = max_tokens, pack = n_packs;
    if (const auto least = with_room.lower_bound(n); least != with_room.end()) {
      room = least->first;
      pack = *least->second.begin();  // the earliest
      least->second.erase(pack);
      if (least->second.empty()) with_room.erase(least);
    } else {
      ++n_packs;
    }
    pack_of.push_back(pack);
    if (room > n) with_room[room - n].insert(pack);
  }
  return pack_of;
}

}  // namespace

TokenizedDataset::TokenizedDataset() : TokenizedDataset(MemoryWriter(TokenForm()).finish()) {}

TokenizedDataset::TokenizedDataset(std::shared_ptr<const TokenStore> store)
    : store_(std::move(store)), n_examples_(store_->facts().n_examples) {}

int64_t TokenizedDataset::n_tokens() const {
  if (!is_selection_) return store_->facts().n_tokens;
  int64_t n = 0;
  for (int64_t i = 0; i < n_sequences(); ++i)
    n += n_ids(i);
  return n;
}

int64_t TokenizedDataset::n_tokens(int64_t sample) const {
  const auto [begin, end] = sequences_of(sample);
  int64_t n = 0;
  for (int64_t i = begin; i < end; ++i)
    n += n_ids(i);
  return n;
}

int64_t TokenizedDataset::n_truncated() const {
  int64_t n = 0;
  for (int64_t i = 0; i < n_sequences(); ++i)
    n += entry(i).is_truncated();
  return n;
}

int64_t TokenizedDataset::view_bytes() const {
  return static_cast<int64_t>((order_.capacity() + packs_.capacity()) * sizeof(int64_t));
}

std::vector<int32_t> TokenizedDataset::ids(int64_t sequence) const {
  std::vector<int32_t> ids, types;
  append_tokens(sequence, ids, types);
  return ids;
}

std::vector<int32_t> TokenizedDataset::type_ids(int64_t sequence) const {
  std::vector<int32_t> ids, types;
  append_tokens(sequence, ids, types);
  return types;
}

uint64_t TokenizedDataset::fingerprint() const {
  uint64_t hash = hash_key(static_cast<uint64_t>(has_labels()), n_sequences());
  for (int64_t i = 0; i < n_sequences(); ++i)
    hash = hash_key(hash, entry(i).hash);
  for (const int64_t pack : packs_)
    hash = hash_key(hash, pack);
  return hash;
}

std::vector<int32_t> TokenizedDataset::lengths() const {
  std::vector<int32_t> result;
  result.reserve(static_cast<size_t>(size()));
  for (int64_t i = 0; i < size(); ++i)
    result.push_back(static_cast<int32_t>(n_tokens(i)));
  return result;
}

std::vector<int32_t> TokenizedDataset::sequence_lengths() const {
  std::vector<int32_t> result;
  result.reserve(static_cast<size_t>(n_sequences()));
  for (int64_t i = 0; i < n_sequences(); ++i)
    result.push_back(static_cast<int32_t>(n_ids(i)));
  return result;
}

std::vector<int32_t> TokenizedDataset::pack_sizes() const {
  std::vector<int32_t> result;
  for (size_t i = 0; i + 1 < packs_.size(); ++i)
    result.push_back(static_cast<int32_t>(packs_[i + 1] - packs_[i]));
  return result;
}

TokenizedDataset TokenizedDataset::of_examples(std::span<const int64_t> places) const {
  FERRY_CHECK(!is_packed(), "packs that are to be taken apart");
  TokenizedDataset some(store_);
  some.is_selection_ = true;
  some.n_examples_ = std::ssize(places);
  auto wanted = places.begin();
  for (int64_t i = 0; i < n_sequences(); ++i) {
    while (wanted != places.end() && *wanted < example_of(i))
      ++wanted;
    if (wanted != places.end() && *wanted == example_of(i)) some.order_.push_back(place(i));
  }
  some.order_.shrink_to_fit();
  return some;
}

TokenizedDataset TokenizedDataset::packed(int64_t max_tokens) const {
  const std::vector<int64_t> pack_of = choose_packs(sequence_lengths(), max_tokens);
  TokenizedDataset result(store_);
  result.n_examples_ = n_examples_;
  result.is_selection_ = true;
  const int64_t n_packs = pack_of.empty() ? 0 : 1 + *std::ranges::max_element(pack_of);
  // The place where each pack begins; then where its next sequence goes.
  std::vector<int64_t> next(static_cast<size_t>(n_packs) + 1);
  for (const int64_t pack : pack_of)
    ++next[static_cast<size_t>(pack) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  result.packs_ = next;
  result.order_.resize(pack_of.size());
  for (size_t i = 0; i < pack_of.size(); ++i)
    result.order_[static_cast<size_t>(next[static_cast<size_t>(pack_of[i])]++)] =
        place(static_cast<int64_t>(i));
  return result;
}

TokenizedDataset TokenizedDataset::in_pairs() const {
  FERRY_CHECK(!is_packed() && n_sequences() % 2 == 0, "{} sequences in pairs", n_sequences());
  TokenizedDataset result = *this;
  result.packs_.reserve(static_cast<size_t>(n_sequences() / 2 + 1));
  for (int64_t first = 0; first <= n_sequences(); first += 2)
    result.packs_.push_back(first);
  return result;
}

void TokenizedDataset::set_references(std::shared_ptr<const std::vector<float>> references) {
  FERRY_CHECK(std::ssize(*references) == n_sequences(), "{} references of {} sequences",
              references->size(), n_sequences());
  references_ = std::move(references);
}

TokenizedDataset dataset_of(std::span<const TokenizedExample> sequences) {
  MemoryWriter tokens((TokenForm()));
  for (const TokenizedExample& sequence : sequences) {
    tokens.add_example({});
    tokens.add(sequence);
  }
  return TokenizedDataset(tokens.finish());
}

TokenizedDataset tokenize_dataset(const Dataset& dataset, const Tokenize& tokenize, int n_threads) {
  MemoryWriter tokens(
      {.has_labels = dataset.scheme.problem != ProblemType::unlabelled, .keeps_examples = true});
  TokenizeOptions options;
  options.n_threads = n_threads;
  tokenize_examples(*stream_of(dataset.examples), tokenize, options, tokens);
  return TokenizedDataset(tokens.finish());
}

}  // namespace ferry
