#include "src/data/tokens/token_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "src/base/crc32c.h"
#include "src/base/error.h"

namespace ferry {
namespace {

template <typename T>
int64_t bytes_of(const std::vector<T>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(T));
}

template <typename T>
std::span<const T> values_at(std::span<const std::byte> record, size_t offset, size_t n) {
  return {reinterpret_cast<const T*>(record.data() + offset), n};
}

/** Writes values as they lie in memory. */
class RecordWriter {
 public:
  explicit RecordWriter(std::vector<std::byte>& to) : to_(to) {}

  template <typename T>
  void number(T value) {
    append(std::as_bytes(std::span(&value, 1)));
  }
  template <typename T>
  void list(const std::vector<T>& values) {
    number(static_cast<uint32_t>(values.size()));
    append(std::as_bytes(std::span(values)));
  }
  void text(std::string_view text) {
    number(static_cast<uint64_t>(text.size()));
    append(std::as_bytes(std::span(text)));
  }

 private:
  void append(std::span<const std::byte> bytes) {
    to_.insert(to_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte>& to_;
};

class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> from) : from_(from) {}

  template <typename T>
  T number() {
    T value{};
    take(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  template <typename T>
  std::vector<T> list() {
    std::vector<T> values(number<uint32_t>());
    take(std::as_writable_bytes(std::span(values)));
    return values;
  }
  std::string text() {
    std::string text(number<uint64_t>(), '\0');
    take(std::as_writable_bytes(std::span(text)));
    return text;
  }

 private:
  void take(std::span<std::byte> into) {
    FERRY_CHECK(into.size() <= from_.size(), "{} of {} bytes of an example", into.size(),
                from_.size());
    std::ranges::copy(from_.first(into.size()), into.begin());
    from_ = from_.subspan(into.size());
  }
  std::span<const std::byte> from_;
};

}  // namespace

void append_record(const Example& example, std::vector<std::byte>& to) {
  RecordWriter writer(to);
  writer.text(example.text);
  writer.number(example.text_pair.has_value());
  if (example.text_pair) writer.text(*example.text_pair);
  writer.number(example.label.class_id);
  writer.list(example.label.classes);
  writer.number(example.label.value);
  writer.list(example.label.tags);
  writer.list(example.label.answers);
  writer.list(example.words);
  writer.text(example.id);
  writer.number(example.is_chat);
}

Example example_of_record(std::span<const std::byte> record) {
  RecordReader reader(record);
  Example example;
  example.text = reader.text();
  if (reader.number<bool>()) example.text_pair = reader.text();
  example.label.class_id = reader.number<int32_t>();
  example.label.classes = reader.list<int32_t>();
  example.label.value = reader.number<float>();
  example.label.tags = reader.list<int32_t>();
  example.label.answers = reader.list<TextRange>();
  example.words = reader.list<TextRange>();
  example.id = reader.text();
  example.is_chat = reader.number<bool>();
  return example;
}

CheckedPieces::CheckedPieces(MappedFile file,
                             size_t begin,
                             size_t end,
                             std::span<const uint32_t> checksums)
    : file_(std::move(file)),
      begin_(begin),
      end_(end),
      checksums_(checksums),
      is_checked_(std::make_unique<std::atomic<bool>[]>(checksums.size())) {}

bool CheckedPieces::is_good(size_t piece) const {
  if (is_checked_[piece].load(std::memory_order_relaxed)) return true;
  const size_t begin = begin_ + piece * kPiece_bytes;
  const auto bytes = file_.bytes().subspan(begin, std::min(kPiece_bytes, end_ - begin));
  if (crc32c(bytes) != checksums_[piece]) return false;
  is_checked_[piece].store(true, std::memory_order_relaxed);
  return true;
}

bool CheckedPieces::are_good(size_t offset, size_t n_bytes) const {
  if (offset < begin_ || offset > end_ || n_bytes > end_ - offset) return false;
  if (n_bytes == 0) return true;
  const size_t last = (offset + n_bytes - 1 - begin_) / kPiece_bytes;
  for (size_t piece = (offset - begin_) / kPiece_bytes; piece <= last; ++piece)
    if (!is_good(piece)) return false;
  return true;
}

void CheckedPieces::check(size_t offset, size_t n_bytes) const {
  if (are_good(offset, n_bytes)) return;
  std::error_code error;
  const bool is_removed = std::filesystem::remove(file_.path(), error);
  throw Error(Fault::data, "data.tokens",
              fmt::format("'{}' is damaged: its bytes {} to {} are not what was written",
                          file_.path().string(), offset, offset + n_bytes),
              is_removed ? "it was removed; start again, or resume: it is made anew from the texts"
                         : "remove it, and start again, or resume: it is made anew from the texts");
}

TokenStore::TokenStore(const TokenFacts& facts,
                       std::vector<std::byte> data,
                       std::vector<SequenceEntry> index,
                       std::vector<uint64_t> examples)
    : facts_(facts),
      held_data_(std::move(data)),
      held_index_(std::move(index)),
      held_examples_(std::move(examples)),
      data_(held_data_),
      index_(held_index_),
      examples_(held_examples_) {}

TokenStore::TokenStore(const TokenFacts& facts,
                       std::unique_ptr<CheckedPieces> pieces,
                       std::span<const SequenceEntry> index,
                       std::span<const uint64_t> examples)
    : facts_(facts),
      pieces_(std::move(pieces)),
      data_(pieces_->file().bytes()),
      index_(index),
      examples_(examples) {}

std::span<const std::byte> TokenStore::record(uint64_t offset, size_t n_bytes) const {
  if (pieces_) pieces_->check(offset, n_bytes);
  return data_.subspan(offset, n_bytes);
}

void TokenStore::append_tokens(int64_t sequence,
                               std::vector<int32_t>& ids,
                               std::vector<int32_t>& types) const {
  const SequenceEntry& its = entry(sequence);
  const auto id_bytes = static_cast<size_t>(facts_.id_bytes);
  const auto all = record(its.offset, its.n_bytes(id_bytes));
  const size_t at = sizeof(int32_t) * its.n_labels + sizeof(float) * its.n_values;
  const auto append = [&ids](auto narrow) { ids.insert(ids.end(), narrow.begin(), narrow.end()); };
  if (id_bytes == sizeof(uint16_t))
    append(values_at<uint16_t>(all, at, its.n_ids));
  else
    append(values_at<int32_t>(all, at, its.n_ids));
  const size_t n_types = types.size();
  types.resize(n_types + its.n_ids);
  if (its.has_types())
    std::ranges::copy(values_at<uint8_t>(all, at + id_bytes * its.n_ids, its.n_ids),
                      types.begin() + static_cast<std::ptrdiff_t>(n_types));
}

std::span<const int32_t> TokenStore::labels(int64_t sequence) const {
  const SequenceEntry& its = entry(sequence);
  return values_at<int32_t>(record(its.offset, sizeof(int32_t) * its.n_labels), 0, its.n_labels);
}

std::span<const float> TokenStore::values(int64_t sequence) const {
  const SequenceEntry& its = entry(sequence);
  const size_t at = sizeof(int32_t) * its.n_labels;
  return values_at<float>(record(its.offset, at + sizeof(float) * its.n_values), at, its.n_values);
}

Example TokenStore::example(int64_t place) const {
  FERRY_CHECK(place >= 0 && place < std::ssize(examples_), "example {} of {} that are kept", place,
              examples_.size());
  const uint64_t begin = examples_[static_cast<size_t>(place)];
  const auto n_bytes = values_at<uint64_t>(record(begin, sizeof(uint64_t)), 0, 1).front();
  return example_of_record(record(begin + sizeof(uint64_t), n_bytes));
}

int64_t TokenStore::held_bytes() const {
  return bytes_of(held_data_) + bytes_of(held_index_) + bytes_of(held_examples_);
}

}  // namespace ferry
