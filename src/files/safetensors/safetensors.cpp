#include "src/files/safetensors/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/files/safetensors/safetensors_header.h"

namespace ferry {
namespace {

struct TypeRow {
  StoredType type;
  std::string_view name;
  int64_t bits;
  std::optional<DType> dtype;
};

constexpr std::array kTypes = {
    TypeRow{StoredType::boolean, "BOOL", 8, {}},
    TypeRow{StoredType::f4, "F4", 4, {}},
    TypeRow{StoredType::f6_e2m3, "F6_E2M3", 6, {}},
    TypeRow{StoredType::f6_e3m2, "F6_E3M2", 6, {}},
    TypeRow{StoredType::u8, "U8", 8, DType::u8},
    TypeRow{StoredType::i8, "I8", 8, {}},
    TypeRow{StoredType::f8_e5m2, "F8_E5M2", 8, {}},
    TypeRow{StoredType::f8_e4m3, "F8_E4M3", 8, {}},
    TypeRow{StoredType::f8_e8m0, "F8_E8M0", 8, {}},
    TypeRow{StoredType::f8_e4m3fnuz, "F8_E4M3FNUZ", 8, {}},
    TypeRow{StoredType::f8_e5m2fnuz, "F8_E5M2FNUZ", 8, {}},
    TypeRow{StoredType::i16, "I16", 16, {}},
    TypeRow{StoredType::u16, "U16", 16, {}},
    TypeRow{StoredType::f16, "F16", 16, DType::f16},
    TypeRow{StoredType::bf16, "BF16", 16, DType::bf16},
    TypeRow{StoredType::i32, "I32", 32, DType::i32},
    TypeRow{StoredType::u32, "U32", 32, {}},
    TypeRow{StoredType::f32, "F32", 32, DType::f32},
    TypeRow{StoredType::c64, "C64", 64, {}},
    TypeRow{StoredType::f64, "F64", 64, {}},
    TypeRow{StoredType::i64, "I64", 64, DType::i64},
    TypeRow{StoredType::u64, "U64", 64, {}},
};

const TypeRow& row_of(StoredType type) {
  return kTypes.at(static_cast<size_t>(type));
}

/** Header bytes start here; Error(data) in the words of the file at hand. */
[[noreturn]] void refuse(const std::filesystem::path& path,
                         std::string_view what,
                         std::string_view hint) {
  throw Error(Fault::data, "safetensors.open", fmt::format("'{}' {}", path.string(), what), hint);
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string_view name_of(StoredType type) {
  return row_of(type).name;
}
int64_t bits_of(StoredType type) {
  return row_of(type).bits;
}
std::optional<DType> dtype_of(StoredType type) {
  return row_of(type).dtype;
}

std::optional<StoredType> parse_stored_type(std::string_view name) {
  for (const TypeRow& row : kTypes)
    if (row.name == name) return row.type;
  return std::nullopt;
}

StoredType stored_type_of(DType type) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == type) return row.type;
  FERRY_CHECK(false, "no stored type for dtype {}", static_cast<int>(type));
}

std::string format_shape(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

int64_t StoredTensor::n_elements() const {
  int64_t count = 1;  // cannot overflow: the header check multiplied it already
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t StoredTensor::n_bytes() const {
  return strides.empty() && !codes ? std::ssize(bytes) : n_elements() * (bits_of(type) / 8);
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile file(MappedFile::open(path));
  std::span<const std::byte> bytes = file.file_.bytes();
  auto file_bytes = static_cast<int64_t>(bytes.size());

  if (as_text(bytes).starts_with("version https://git-lfs"))
    refuse(path, "is a Git LFS pointer, not the tensors themselves",
           "fetch them with: git lfs pull");
  if (bytes.size() < 8)
    refuse(path, fmt::format("has {} bytes, expected at least 8", file_bytes),
           "is the download complete?");

  uint64_t header_bytes = 0;  // little-endian in the file, as is every machine Ferry runs on
  std::memcpy(&header_bytes, bytes.data(), 8);
  if (header_bytes > static_cast<uint64_t>(kMaxHeader_bytes))
    refuse(path,
           fmt::format("says that its header has {} bytes, expected at most {}", header_bytes,
                       kMaxHeader_bytes),
           "is it a safetensors file?");
  if (8 + static_cast<int64_t>(header_bytes) > file_bytes)
    refuse(path,
           fmt::format("header has {} but the file has {}",
                       format_bytes(static_cast<int64_t>(header_bytes)), format_bytes(file_bytes)),
           "is the download complete?");

  Header header;
  try {
    header = parse_header(as_text(bytes.subspan(8, header_bytes)));
  } catch (const HeaderError& error) {
    refuse(path, fmt::format("is not a valid safetensors file: {}", error.what),
           "fetch or export the file again");
  }

  std::span<const std::byte> data = bytes.subspan(8 + header_bytes);
  int64_t data_bytes = header.entries.empty() ? 0 : header.entries.back().end_bytes;
  if (data_bytes > static_cast<int64_t>(data.size()))
    refuse(path,
           fmt::format("header says {} of tensors but the file has {}", format_bytes(data_bytes),
                       format_bytes(static_cast<int64_t>(data.size()))),
           "is the download complete?");
  if (data_bytes < static_cast<int64_t>(data.size()))
    refuse(
        path,
        fmt::format("header says {} bytes of tensors but the file has {}", data_bytes, data.size()),
        "the file has bytes that belong to no tensor: fetch or export it again");

  file.metadata_ = std::move(header.metadata);
  file.tensors_.reserve(header.entries.size());
  for (HeaderEntry& entry : header.entries) {
    file.index_.emplace(entry.name, file.tensors_.size());
    file.tensors_.push_back({std::move(entry.name),
                             entry.type,
                             std::move(entry.shape),
                             data.subspan(static_cast<size_t>(entry.begin_bytes),
                                          static_cast<size_t>(entry.end_bytes - entry.begin_bytes)),
                             {}});
  }
  return file;
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace ferry
