#include "src/data/tokenized.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <exception>
#include <numeric>
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

void TokenizedDataset::add(const TokenizedExample& tokens, const Label& label) {
  FERRY_CHECK(tokens.type_ids.empty() || tokens.type_ids.size() == tokens.ids.size(),
              "{} types for {} tokens", tokens.type_ids.size(), tokens.ids.size());
  ids_.insert(ids_.end(), tokens.ids.begin(), tokens.ids.end());
  for (int32_t type : tokens.type_ids) {
    FERRY_CHECK(type >= 0 && type <= UINT8_MAX, "a token of type {}", type);
    type_ids_.push_back(static_cast<uint8_t>(type));
  }
  type_ids_.resize(ids_.size());
  offsets_.push_back(static_cast<int64_t>(ids_.size()));
  n_truncated_ += tokens.truncated;
  switch (problem_) {
    case ProblemType::unlabelled:
      break;
    case ProblemType::single_label:
      class_ids_.push_back(label.class_id);
      break;
    case ProblemType::regression:
      values_.push_back(label.value);
      break;
    case ProblemType::multi_label:
      if (class_offsets_.empty()) class_offsets_.push_back(0);
      classes_.insert(classes_.end(), label.classes.begin(), label.classes.end());
      class_offsets_.push_back(static_cast<int64_t>(classes_.size()));
  }
}

uint64_t TokenizedDataset::fingerprint() const {
  uint64_t hash = hash_key(static_cast<uint64_t>(problem_), n_labels_);
  auto add = [&hash](const auto& values) {
    for (const auto value : values)
      hash = mix64(hash + 0x9e3779b97f4a7c15 + std::bit_cast<uint64_t>(static_cast<double>(value)));
    hash = hash_key(hash, values.size());
  };
  add(offsets_), add(ids_), add(type_ids_), add(class_ids_), add(values_);
  add(class_offsets_), add(classes_);
  return hash;
}

int32_t TokenizedDataset::max_type_id() const {
  return type_ids_.empty() ? 0 : *std::max_element(type_ids_.begin(), type_ids_.end());
}

int64_t TokenizedDataset::bytes() const {
  return bytes_of(offsets_) + bytes_of(ids_) + bytes_of(type_ids_) + bytes_of(class_ids_) +
         bytes_of(values_) + bytes_of(class_offsets_) + bytes_of(classes_);
}

std::vector<int32_t> TokenizedDataset::lengths() const {
  std::vector<int32_t> result;
  result.reserve(offsets_.size() - 1);
  for (size_t i = 0; i + 1 < offsets_.size(); ++i)
    result.push_back(static_cast<int32_t>(offsets_[i + 1] - offsets_[i]));
  return result;
}

std::span<const int32_t> TokenizedDataset::classes(int64_t sample) const {
  const auto i = static_cast<size_t>(sample);
  return std::span(classes_).subspan(
      static_cast<size_t>(class_offsets_[i]),
      static_cast<size_t>(class_offsets_[i + 1] - class_offsets_[i]));
}

TokenizedDataset tokenize_dataset(const Dataset& dataset,
                                  const Tokenize& tokenize,
                                  std::span<const int64_t> which,
                                  int n_threads) {
  std::vector<int64_t> all;
  if (which.empty()) {
    all.resize(dataset.examples.size());
    std::iota(all.begin(), all.end(), 0);
    which = all;
  }
  TokenizedDataset result(dataset.scheme.problem, dataset.scheme.labels.size());
  // Pieces of a few thousand samples: enough to share out, and what is not yet in the flat array
  // stays small.
  constexpr size_t kPiece = 4096;
  std::vector<TokenizedExample> piece;
  for (size_t begin = 0; begin < which.size(); begin += kPiece) {
    const auto part = which.subspan(begin, std::min(kPiece, which.size() - begin));
    piece.assign(part.size(), {});
    const auto work = [&](std::atomic<size_t>& next, std::exception_ptr& failure) {
      try {
        for (size_t i; (i = next.fetch_add(1)) < part.size();)
          piece[i] = tokenize(dataset.examples[static_cast<size_t>(part[i])]);
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
    for (size_t i = 0; i < part.size(); ++i) {
      if (piece[i].ids.empty())
        throw Error(Fault::data, "data.tokenize",
                    fmt::format("example {} has no tokens", part[i] + 1), "is its text blank?");
      result.add(piece[i], dataset.examples[static_cast<size_t>(part[i])].label);
    }
  }
  return result;
}

}  // namespace ferry
