#include "src/data/tokens/token_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/process/host_memory.h"
#include "src/data/content_hash.h"

namespace ferry {
namespace {

constexpr size_t kBoundary_bytes = 8;

template <typename T>
void append(std::vector<std::byte>& to, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <typename Narrow>
void append_as(std::vector<std::byte>& to, std::span<const int32_t> values) {
  const size_t begin = to.size();
  to.resize(begin + values.size() * sizeof(Narrow));
  auto* at = reinterpret_cast<Narrow*>(to.data() + begin);
  for (const int32_t value : values)
    *at++ = static_cast<Narrow>(value);
}

uint64_t hash_of(const TokenizedExample& sequence, bool has_types) {
  ContentHash hash;
  const auto add = [&hash](const auto& values) {
    hash.add(std::as_bytes(std::span(values)));
    hash.add_number(values.size());
  };
  add(sequence.ids), add(sequence.labels), add(sequence.values);
  if (has_types) add(sequence.type_ids);
  return hash.value();
}

}  // namespace

TokenWriter::TokenWriter(const TokenForm& form, uint64_t begin)
    : vocab_size_(form.vocab_size), end_(begin) {
  constexpr int64_t kNarrow_max = std::numeric_limits<uint16_t>::max();
  facts_.id_bytes = form.vocab_size - 1 <= kNarrow_max ? 2 : 4;
  facts_.has_labels = form.has_labels;
  facts_.keeps_examples = form.keeps_examples;
}

void TokenWriter::add_example(const Example& example) {
  ++facts_.n_examples;
  if (!facts_.keeps_examples) return;
  record_.resize(sizeof(uint64_t));
  append_record(example, record_);
  const uint64_t n_bytes = record_.size() - sizeof n_bytes;
  std::ranges::copy(std::as_bytes(std::span(&n_bytes, 1)), record_.begin());
  write_example(write_record());
}

void TokenWriter::add(const TokenizedExample& sequence) {
  FERRY_CHECK(facts_.n_examples > 0, "a sequence before the first example");
  FERRY_CHECK(sequence.type_ids.empty() || sequence.type_ids.size() == sequence.ids.size(),
              "{} types for {} tokens", sequence.type_ids.size(), sequence.ids.size());
  for (const int32_t id : sequence.ids)
    FERRY_CHECK(id >= 0 && id < vocab_size_, "the id {} of a vocabulary of {}", id, vocab_size_);
  const int32_t max_type =
      sequence.type_ids.empty() ? 0 : *std::ranges::max_element(sequence.type_ids);
  FERRY_CHECK(max_type <= UINT8_MAX &&
                  std::ranges::all_of(sequence.type_ids, [](int32_t type) { return type >= 0; }),
              "a token of type {}", max_type);
  facts_.max_type_id = std::max(facts_.max_type_id, max_type);
  facts_.n_tokens += std::ssize(sequence.ids);

  record_.clear();
  append(record_, std::span(sequence.labels));
  append(record_, std::span(sequence.values));
  if (facts_.id_bytes == sizeof(uint16_t))
    append_as<uint16_t>(record_, sequence.ids);
  else
    append(record_, std::span(sequence.ids));
  if (max_type > 0) append_as<uint8_t>(record_, sequence.type_ids);
  SequenceEntry entry = {.hash = hash_of(sequence, max_type > 0),
                         .example = facts_.n_examples - 1,
                         .n_ids = static_cast<uint32_t>(sequence.ids.size()),
                         .n_labels = static_cast<uint32_t>(sequence.labels.size()),
                         .n_values = static_cast<uint32_t>(sequence.values.size())};
  if (max_type > 0) entry.flags |= SequenceEntry::kHasTypes;
  if (sequence.truncated) entry.flags |= SequenceEntry::kTruncated;
  entry.offset = write_record();
  write_entry(entry);
}

uint64_t TokenWriter::write_record() {
  record_.resize((record_.size() + kBoundary_bytes - 1) / kBoundary_bytes * kBoundary_bytes);
  write(record_);
  return std::exchange(end_, end_ + record_.size());
}

/** The system promises memory that it does not have, and ends the process that uses it. */
void MemoryWriter::write(std::span<const std::byte> record) {
  constexpr size_t kSmall_bytes = 16 << 20;
  const size_t wanted = data_.size() + record.size();
  if (wanted > data_.capacity()) {
    const size_t room = std::max(wanted, 2 * data_.capacity());
    if (room > kSmall_bytes && room > static_cast<size_t>(read_host_memory().free_bytes()))
      throw Error(Fault::does_not_fit, "data.tokenize",
                  fmt::format("the texts' tokens take more than {}, and {} of memory are free",
                              format_bytes(static_cast<int64_t>(data_.size())),
                              format_bytes(read_host_memory().free_bytes())),
                  "keep them in files: token_cache = DIR, a directory with room for them");
    data_.reserve(room);
  }
  data_.insert(data_.end(), record.begin(), record.end());
}

std::shared_ptr<const TokenStore> MemoryWriter::finish() {
  return std::make_shared<TokenStore>(facts(), std::move(data_), std::move(index_),
                                      std::move(examples_));
}

}  // namespace ferry
