#include "src/files/gguf/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/files/safetensors/safetensors.h"

namespace ferry {
namespace {

constexpr const char* kFetchAgain = "fetch or export the file again";
constexpr const char* kIsComplete = "is the download complete?";

/** More than any model has; the lists of a tokenizer are far below. */
constexpr uint64_t kTensors_max = 1 << 20, kKeys_max = 1 << 16, kElements_max = 1 << 24;

struct KindRow {
  GgufKind kind;
  std::string_view name;
  size_t bytes;  ///< the least that a value takes
};
constexpr std::array kKinds = {
    KindRow{GgufKind::u8, "u8", 1},     KindRow{GgufKind::i8, "i8", 1},
    KindRow{GgufKind::u16, "u16", 2},   KindRow{GgufKind::i16, "i16", 2},
    KindRow{GgufKind::u32, "u32", 4},   KindRow{GgufKind::i32, "i32", 4},
    KindRow{GgufKind::f32, "f32", 4},   KindRow{GgufKind::boolean, "bool", 1},
    KindRow{GgufKind::text, "text", 8}, KindRow{GgufKind::list, "list", 12},
    KindRow{GgufKind::u64, "u64", 8},   KindRow{GgufKind::i64, "i64", 8},
    KindRow{GgufKind::f64, "f64", 8},
};

/** The fault of a file, in one sentence without its subject, and a remedy. */
struct GgufFault {
  std::string what;
  const char* hint = kFetchAgain;
};

/** Takes values from the front of the file's bytes; past the end it throws GgufFault. */
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t place() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

  template <typename Number>
  Number take() {
    Number number;
    std::memcpy(&number, take_bytes(sizeof number).data(), sizeof number);
    return number;
  }

  std::string take_text() {
    const auto n = take<uint64_t>();
    if (n > left())
      throw GgufFault{
          fmt::format("has a text of {} bytes at byte {}, and {} are left", n, at_, left()),
          kIsComplete};
    const auto bytes = take_bytes(static_cast<size_t>(n));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const std::byte> take_bytes(size_t n) {
    if (n > left())
      throw GgufFault{fmt::format("ends at byte {}, within its header", bytes_.size()),
                      kIsComplete};
    const auto taken = bytes_.subspan(at_, n);
    at_ += n;
    return taken;
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

const KindRow& take_kind(Cursor& cursor, const std::string& key) {
  const auto number = cursor.take<uint32_t>();
  const auto* row = std::ranges::find(kKinds, static_cast<GgufKind>(number), &KindRow::kind);
  if (row == kKinds.end())
    throw GgufFault{fmt::format("gives the key '{}' a value of the unknown kind {}", key, number)};
  return *row;
}

bool take_flag(Cursor& cursor, const std::string& key) {
  const auto byte = cursor.take<uint8_t>();
  if (byte > 1)
    throw GgufFault{fmt::format("has {} as the flag of '{}', expected 0 or 1", byte, key)};
  return byte == 1;
}

int64_t take_integer(Cursor& cursor, GgufKind kind, const std::string& key) {
  switch (kind) {
    case GgufKind::u8:
      return cursor.take<uint8_t>();
    case GgufKind::i8:
      return cursor.take<int8_t>();
    case GgufKind::u16:
      return cursor.take<uint16_t>();
    case GgufKind::i16:
      return cursor.take<int16_t>();
    case GgufKind::u32:
      return cursor.take<uint32_t>();
    case GgufKind::i32:
      return cursor.take<int32_t>();
    case GgufKind::boolean:
      return take_flag(cursor, key);
    default:
      break;
  }
  const auto number = cursor.take<uint64_t>();
  if (kind == GgufKind::u64 && number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    throw GgufFault{fmt::format("has {} as the number of '{}', which is too large", number, key)};
  return std::bit_cast<int64_t>(number);
}

double take_number(Cursor& cursor, GgufKind kind) {
  return kind == GgufKind::f32 ? static_cast<double>(cursor.take<float>()) : cursor.take<double>();
}

bool is_number(GgufKind kind) {
  return kind == GgufKind::f32 || kind == GgufKind::f64;
}

/** Fills a list whose length was checked. */
template <typename Element, typename Take>
std::vector<Element> take_all(uint64_t n, Take take) {
  std::vector<Element> all;
  all.reserve(static_cast<size_t>(n));
  for (uint64_t i = 0; i < n; ++i)
    all.push_back(take());
  return all;
}

GgufValue take_list(Cursor& cursor, const std::string& key) {
  const KindRow& element = take_kind(cursor, key);
  if (element.kind == GgufKind::list)
    throw GgufFault{fmt::format("has a list of lists as '{}'", key)};
  const auto n = cursor.take<uint64_t>();
  if (n > cursor.left() / element.bytes || n > kElements_max)
    throw GgufFault{fmt::format("says that the list '{}' has {} elements, and {} bytes are left",
                                key, n, cursor.left()),
                    kIsComplete};
  GgufValue value{GgufKind::list, element.kind, {}};
  if (element.kind == GgufKind::text)
    value.content = take_all<std::string>(n, [&] { return cursor.take_text(); });
  else if (is_number(element.kind))
    value.content = take_all<double>(n, [&] { return take_number(cursor, element.kind); });
  else
    value.content = take_all<int64_t>(n, [&] { return take_integer(cursor, element.kind, key); });
  return value;
}

GgufValue take_value(Cursor& cursor, const std::string& key) {
  const GgufKind kind = take_kind(cursor, key).kind;
  if (kind == GgufKind::list) return take_list(cursor, key);
  GgufValue value{kind, GgufKind::u32, {}};
  if (kind == GgufKind::text)
    value.content = cursor.take_text();
  else if (kind == GgufKind::boolean)
    value.content = take_flag(cursor, key);
  else if (is_number(kind))
    value.content = take_number(cursor, kind);
  else
    value.content = take_integer(cursor, kind, key);
  return value;
}

/** A tensor of the header; its bytes are found when all are known. */
struct TensorEntry {
  GgufTensor tensor;
  uint64_t offset_bytes = 0;  ///< from the begin of the tensors
  uint64_t n_bytes = 0;
};

TensorEntry take_entry(Cursor& cursor) {
  TensorEntry entry;
  std::string& name = entry.tensor.name;
  name = cursor.take_text();
  if (name.empty() || name.size() > kGgufName_bytes_max)
    throw GgufFault{fmt::format("has a tensor with a name of {} bytes, expected 1 to {}",
                                name.size(), kGgufName_bytes_max)};
  const auto n_dims = cursor.take<uint32_t>();
  if (n_dims < 1 || n_dims > kGgufDims_max)
    throw GgufFault{fmt::format("has the tensor '{}' with {} dimensions, expected 1 to {}", name,
                                n_dims, kGgufDims_max)};
  std::vector<int64_t>& shape = entry.tensor.shape;
  for (uint32_t i = 0; i < n_dims; ++i)
    shape.push_back(cursor.take<int64_t>());
  std::ranges::reverse(shape);
  std::optional<int64_t> n_elements = 1;
  for (const int64_t size : shape)
    n_elements = size >= 1 && n_elements ? checked_mul(*n_elements, size) : std::nullopt;
  if (!n_elements)
    throw GgufFault{
        fmt::format("has the tensor '{}' with the impossible shape {}", name, format_shape(shape))};
  const auto number = cursor.take<uint32_t>();
  const auto type = gguf_type_of(number);
  if (!type)
    throw GgufFault{
        fmt::format("has the tensor '{}' of type {}, which Ferry does not read", name, number),
        "Ferry reads F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K and MXFP4"};
  entry.tensor.type = *type;
  if (shape.back() % block_elements(*type) != 0)
    throw GgufFault{fmt::format("has the tensor '{}' of {} with rows of {}, no multiple of {}",
                                name, name_of(*type), shape.back(), block_elements(*type))};
  const auto n_bytes = checked_mul(*n_elements / block_elements(*type), block_bytes(*type));
  if (!n_bytes)
    throw GgufFault{
        fmt::format("has the tensor '{}' with the impossible shape {}", name, format_shape(shape))};
  entry.n_bytes = static_cast<uint64_t>(*n_bytes);
  entry.offset_bytes = cursor.take<uint64_t>();
  return entry;
}

uint64_t alignment_of(const GgufKeys& keys) {
  const GgufValue* value = find_key(keys, kGgufAlignmentKey);
  if (!value) return kGgufAlignment_bytes;
  const auto* number = std::get_if<int64_t>(&value->content);
  if (!number || *number < 1 || *number > (1 << 20) ||
      !std::has_single_bit(static_cast<uint64_t>(*number)))
    throw GgufFault{fmt::format("has no power of two as '{}'", kGgufAlignmentKey)};
  return static_cast<uint64_t>(*number);
}

void check_begin(Cursor& cursor) {
  const auto magic = cursor.take<std::array<char, 4>>();
  if (std::string_view(magic.data(), magic.size()) != "GGUF")
    throw GgufFault{"is no GGUF file: it does not begin with GGUF", "is it the right file?"};
  const auto version = cursor.take<uint32_t>();
  if (version == kGgufVersion << 24)
    throw GgufFault{"is for machines of the other byte order", "fetch a little-endian one"};
  if (version != kGgufVersion && version != 2)
    throw GgufFault{
        fmt::format("has version {} of the format, expected 2 or {}", version, kGgufVersion),
        "make it again with a newer llama.cpp"};
}

}  // namespace

std::string_view name_of(GgufKind kind) {
  return std::ranges::find(kKinds, kind, &KindRow::kind)->name;
}

const GgufValue* find_key(const GgufKeys& keys, std::string_view key) {
  const auto found = std::ranges::find(keys, key, &GgufKeys::value_type::first);
  return found == keys.end() ? nullptr : &found->second;
}

int64_t GgufTensor::rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  return rows;
}

void GgufTensor::read_row(int64_t row, std::span<float> values) const {
  const auto n_bytes = static_cast<size_t>(bytes_of(type, columns()));
  decode_gguf(type, bytes.subspan(static_cast<size_t>(row) * n_bytes, n_bytes), values);
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  GgufFile file(MappedFile::open(path));
  const std::span<const std::byte> bytes = file.file_.bytes();
  try {
    Cursor cursor(bytes);
    check_begin(cursor);
    const auto n_tensors = cursor.take<uint64_t>(), n_keys = cursor.take<uint64_t>();
    // A key takes 13 bytes at least, a tensor 32.
    if (n_keys > std::min<uint64_t>(kKeys_max, cursor.left() / 13))
      throw GgufFault{fmt::format("says that it has {} keys", n_keys), kIsComplete};
    if (n_tensors > std::min<uint64_t>(kTensors_max, cursor.left() / 32))
      throw GgufFault{fmt::format("says that it has {} tensors", n_tensors), kIsComplete};

    std::unordered_map<std::string, size_t> seen;
    for (uint64_t i = 0; i < n_keys; ++i) {
      std::string key = cursor.take_text();
      if (key.empty() || first_invalid_utf8(key) != key.npos)
        throw GgufFault{fmt::format("has a key without a name, number {}", i)};
      if (!seen.emplace(key, i).second) throw GgufFault{fmt::format("has the key '{}' twice", key)};
      GgufValue value = take_value(cursor, key);
      file.keys_.emplace_back(std::move(key), std::move(value));
    }
    std::vector<TensorEntry> entries;
    for (uint64_t i = 0; i < n_tensors; ++i)
      entries.push_back(take_entry(cursor));

    const uint64_t alignment = alignment_of(file.keys_);
    const auto padded = [&](uint64_t n) { return (n + alignment - 1) / alignment * alignment; };
    const uint64_t begin = padded(cursor.place());
    if (n_tensors > 0 && begin > bytes.size())
      throw GgufFault{"ends before its tensors begin", kIsComplete};
    std::ranges::stable_sort(entries, {}, &TensorEntry::offset_bytes);
    uint64_t next = 0;
    for (TensorEntry& entry : entries) {
      GgufTensor& tensor = entry.tensor;
      if (entry.offset_bytes != next)
        throw GgufFault{fmt::format("has the tensor '{}' at byte {} of its tensors, expected {}",
                                    tensor.name, entry.offset_bytes, next)};
      if (entry.n_bytes > bytes.size() - begin || next > bytes.size() - begin - entry.n_bytes)
        throw GgufFault{fmt::format("has the tensor '{}' of {} beyond its end", tensor.name,
                                    format_bytes(static_cast<int64_t>(entry.n_bytes))),
                        kIsComplete};
      tensor.bytes =
          bytes.subspan(static_cast<size_t>(begin + next), static_cast<size_t>(entry.n_bytes));
      next = padded(next + entry.n_bytes);
      if (!file.index_.emplace(tensor.name, file.tensors_.size()).second)
        throw GgufFault{fmt::format("has the tensor '{}' twice", tensor.name)};
      file.tensors_.push_back(std::move(tensor));
    }
    if (bytes.size() > begin && bytes.size() - begin > next)
      throw GgufFault{
          fmt::format("has {} bytes that belong to no tensor", bytes.size() - begin - next)};
  } catch (const GgufFault& fault) {
    throw Error(Fault::data, "gguf.open", fmt::format("'{}' {}", path.string(), fault.what),
                fault.hint);
  }
  return file;
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace ferry
