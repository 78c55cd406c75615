#include "src/data/tokenized.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <exception>
#include <map>
#include <set>
#include <thread>

#include "src/base/error.h"
#include "src/data/hash.h"

namespace ferry {
namespace {

template <typename T>
int64_t bytes_of(const std::vector<T>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(T));
}

}  // namespace

void TokenizedDataset::add(const TokenizedExample& sequence, int64_t example) {
  FERRY_CHECK(!is_packed(), "a sequence for packs that are made");
  FERRY_CHECK(sequence.type_ids.empty() || sequence.type_ids.size() == sequence.ids.size(),
              "{} types for {} tokens", sequence.type_ids.size(), sequence.ids.size());
  ids_.insert(ids_.end(), sequence.ids.begin(), sequence.ids.end());
  for (int32_t type : sequence.type_ids) {
    FERRY_CHECK(type >= 0 && type <= UINT8_MAX, "a token of type {}", type);
    type_ids_.push_back(static_cast<uint8_t>(type));
  }
  type_ids_.resize(ids_.size());
  offsets_.push_back(static_cast<int64_t>(ids_.size()));
  labels_.insert(labels_.end(), sequence.labels.begin(), sequence.labels.end());
  label_offsets_.push_back(static_cast<int64_t>(labels_.size()));
  values_.insert(values_.end(), sequence.values.begin(), sequence.values.end());
  value_offsets_.push_back(static_cast<int64_t>(values_.size()));
  examples_.push_back(example);
  n_truncated_ += sequence.truncated;
}

uint64_t TokenizedDataset::fingerprint() const {
  uint64_t hash = hash_key(static_cast<uint64_t>(has_labels_));
  auto add = [&hash](const auto& values) {
    for (const auto value : values)
      hash = mix64(hash + 0x9e3779b97f4a7c15 + std::bit_cast<uint64_t>(static_cast<double>(value)));
    hash = hash_key(hash, values.size());
  };
  add(offsets_), add(ids_), add(type_ids_), add(label_offsets_), add(labels_);
  add(value_offsets_), add(values_);
  if (is_packed()) add(packs_);
  return hash;
}

int32_t TokenizedDataset::max_type_id() const {
  return type_ids_.empty() ? 0 : *std::max_element(type_ids_.begin(), type_ids_.end());
}

int64_t TokenizedDataset::bytes() const {
  return bytes_of(offsets_) + bytes_of(ids_) + bytes_of(type_ids_) + bytes_of(label_offsets_) +
         bytes_of(labels_) + bytes_of(value_offsets_) + bytes_of(values_) + bytes_of(examples_) +
         bytes_of(packs_);
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
  result.reserve(offsets_.size() - 1);
  for (size_t i = 0; i + 1 < offsets_.size(); ++i)
    result.push_back(static_cast<int32_t>(offsets_[i + 1] - offsets_[i]));
  return result;
}

std::vector<int32_t> TokenizedDataset::pack_sizes() const {
  std::vector<int32_t> result;
  for (size_t i = 0; i + 1 < packs_.size(); ++i)
    result.push_back(static_cast<int32_t>(packs_[i + 1] - packs_[i]));
  return result;
}

void TokenizedDataset::add(const TokenizedDataset& from, int64_t sequence) {
  const auto append = [](auto& to, auto& offsets, auto part) {
    to.insert(to.end(), part.begin(), part.end());
    offsets.push_back(std::ssize(to));
  };
  const auto types = from.type_ids(sequence);
  type_ids_.insert(type_ids_.end(), types.begin(), types.end());
  append(ids_, offsets_, from.ids(sequence));
  append(labels_, label_offsets_, from.labels(sequence));
  append(values_, value_offsets_, from.values(sequence));
  examples_.push_back(from.example_of(sequence));
}

TokenizedDataset TokenizedDataset::packed(int64_t max_tokens) const {
  std::vector<std::vector<int64_t>> packs;
  std::map<int64_t, std::set<size_t>> with_room;  // packs by the tokens that they still take
  for (int64_t i = 0; i < n_sequences(); ++i) {
    const int64_t n = std::ssize(ids(i));
    FERRY_CHECK(n <= max_tokens, "a sequence of {} tokens, packs of {}", n, max_tokens);
    int64_t room = max_tokens;
    size_t pack = packs.size();
    if (const auto least = with_room.lower_bound(n); least != with_room.end()) {
      room = least->first;
      pack = *least->second.begin();  // the earliest
      least->second.erase(pack);
      if (least->second.empty()) with_room.erase(least);
    } else {
      packs.emplace_back();
    }
    packs[pack].push_back(i);
    if (room > n) with_room[room - n].insert(pack);
  }
  TokenizedDataset result;
  result.has_labels_ = has_labels_;
  result.n_truncated_ = n_truncated_;
  result.ids_.reserve(ids_.size());
  result.type_ids_.reserve(type_ids_.size());
  result.packs_ = {0};
  for (const auto& pack : packs) {
    for (int64_t sequence : pack)
      result.add(*this, sequence);
    result.packs_.push_back(result.n_sequences());
  }
  return result;
}

TokenizedDataset tokenize_dataset(const Dataset& dataset, const Tokenize& tokenize, int n_threads) {
  TokenizedDataset result;
  result.set_has_labels(dataset.scheme.problem != ProblemType::unlabelled);
  const std::span all(dataset.examples);
  // Pieces of a few thousand samples: enough to share out, and what is not yet in the flat array
  // stays small.
  constexpr size_t kPiece = 4096;
  std::vector<std::vector<TokenizedExample>> piece;  // the samples of each example
  for (size_t begin = 0; begin < all.size(); begin += kPiece) {
    const auto part = all.subspan(begin, std::min(kPiece, all.size() - begin));
    piece.assign(part.size(), {});
    const auto work = [&](std::atomic<size_t>& next, std::exception_ptr& failure) {
      try {
        for (size_t i; (i = next.fetch_add(1)) < part.size();)
          tokenize(part[i], piece[i]);
      } catch (...) {
        failure = std::current_exception();
        next.store(part.size());  // the others stop too
      }
    };
    std::atomic<size_t> next{0};
    std::vector<std::exception_ptr> failures(static_cast<size_t>(std::max(n_threads, 1)));
    {
      std::vector<std::jthread> threads;
      for (size_t t = 1; t < failures.size(); ++t)
        threads.emplace_back([&, t] { work(next, failures[t]); });
      work(next, failures[0]);
    }
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    for (size_t i = 0; i < part.size(); ++i)
      for (const TokenizedExample& sample : piece[i]) {
        if (sample.ids.empty())
          throw Error(Fault::data, "data.tokenize",
                      fmt::format("example {} has no tokens", begin + i + 1), "is its text blank?");
        result.add(sample, static_cast<int64_t>(begin + i));
      }
  }
  return result;
}

}  // namespace ferry
