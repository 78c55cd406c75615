#include "src/engine/ranks/packed_batch.h"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>

#include "src/base/error.h"

namespace ferry {
namespace {

/** Values begin at multiples of 8 bytes. */
constexpr size_t aligned(size_t n_bytes) {
  return (n_bytes + 7) / 8 * 8;
}

class Writer {
 public:
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    put(std::span(&value, 1));
  }
  template <class Value>
  void put(std::span<const Value> values) {
    const auto n = static_cast<int64_t>(values.size());
    append(&n, sizeof n);
    append(values.data(), values.size_bytes());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(const void* from, size_t n_bytes) {
    const size_t at = bytes_.size();
    bytes_.resize(aligned(at + n_bytes));
    if (n_bytes > 0) std::memcpy(bytes_.data() + at, from, n_bytes);
  }
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class Value>
  void get(Value& value) {
    std::span<const Value> values;
    get(values);
    FERRY_CHECK(values.size() == 1, "{} values for one", values.size());
    value = values.front();
  }
  template <class Value>
  void get(std::span<const Value>& values) {
    int64_t n = 0;
    std::memcpy(&n, take(sizeof n), sizeof n);
    const auto size = static_cast<size_t>(n);
    values = {reinterpret_cast<const Value*>(take(size * sizeof(Value))), size};
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  const std::byte* take(size_t n_bytes) {
    const size_t n = aligned(n_bytes);
    FERRY_CHECK(n <= bytes_.size(), "{} bytes of a batch, {} are left", n, bytes_.size());
    const std::byte* const at = bytes_.data();
    bytes_ = bytes_.subspan(n);
    return at;
  }
  std::span<const std::byte> bytes_;
};

/** Calls `each` with all that a batch consists of but for its lists of streams. */
template <class Batch, class Each>
void for_members(Batch& batch, const Each& each) {
  each(batch.shape.tokens), each(batch.shape.n_seqs_max), each(batch.shape.max_length);
  each(batch.n_seqs), each(batch.n_seqs_real), each(batch.n_label_items), each(batch.n_end_items);
  each(batch.input_ids), each(batch.type_ids), each(batch.position_ids), each(batch.generates);
  each(batch.cache_places), each(batch.cache_lengths), each(batch.cu_seqlens);
  each(batch.features), each(batch.labels), each(batch.preferences);
}
template <class Stream, class Each>
void for_members_of_stream(Stream& stream, const Each& each) {
  each(stream.n_seqs), each(stream.input_ids), each(stream.type_ids), each(stream.position_ids);
  each(stream.cu_seqlens), each(stream.features);
}

}  // namespace

std::vector<std::byte> pack(const HostBatch& batch) {
  Writer writer;
  const auto put = [&](const auto& value) { writer.put(value); };
  for_members(batch, put);
  put(batch.label_weight.has_value()), put(batch.label_weight.value_or(0));
  put(batch.label_rows.has_value());
  put(batch.label_rows.value_or(std::span<const int32_t>()));
  put(std::span<const StreamShape>(batch.shape.streams));
  put(static_cast<int64_t>(batch.others.size()));
  for (const HostStream& stream : batch.others)
    for_members_of_stream(stream, put);
  return writer.take();
}

HostBatch unpack(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  HostBatch batch;
  const auto get = [&](auto& value) { reader.get(value); };
  for_members(batch, get);
  bool is_there = false;
  double label_weight = 0;
  std::span<const int32_t> label_rows;
  get(is_there), get(label_weight);
  if (is_there) batch.label_weight = label_weight;
  get(is_there), get(label_rows);
  if (is_there) batch.label_rows = label_rows;
  std::span<const StreamShape> streams;
  get(streams);
  batch.shape.streams.assign(streams.begin(), streams.end());
  int64_t n_others = 0;
  get(n_others);
  batch.others.resize(static_cast<size_t>(n_others));
  for (HostStream& stream : batch.others)
    for_members_of_stream(stream, get);
  FERRY_CHECK(reader.is_at_end(), "bytes behind a batch");
  return batch;
}

}  // namespace ferry
