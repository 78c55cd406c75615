#pragma once
// One GGUF file, read in place: "GGUF", a version, keys with values, the places of tensors, and
// their bytes. Everything before the bytes is checked when the file is opened, so that every span
// handed out later lies inside the file. `ferry export` opens here what it wrote.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "src/files/gguf/gguf_types.h"
#include "src/files/mapped_file.h"

namespace ferry {

inline constexpr uint32_t kGgufVersion = 3;
inline constexpr int64_t kGgufAlignment_bytes = 32;
/** ggml's own bounds. */
inline constexpr size_t kGgufName_bytes_max = 63, kGgufDims_max = 4;
inline constexpr const char* kGgufAlignmentKey = "general.alignment";

/** The kinds of values, with the format's numbers. */
enum class GgufKind : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  text = 8,
  list = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
/** "u32", "list". */
std::string_view name_of(GgufKind kind);

/** The value of a key. Whole numbers of all kinds are int64, numbers are double. */
struct GgufValue {
  using Content = std::variant<int64_t,
                               double,
                               bool,
                               std::string,
                               std::vector<int64_t>,
                               std::vector<double>,
                               std::vector<std::string>>;

  GgufKind kind = GgufKind::u32;
  GgufKind element = GgufKind::u32;  ///< of a list
  Content content = int64_t{0};

  static GgufValue u32(int64_t value) { return {GgufKind::u32, GgufKind::u32, value}; }
  static GgufValue f32(float value) {
    return {GgufKind::f32, GgufKind::u32, static_cast<double>(value)};
  }
  static GgufValue flag(bool value) { return {GgufKind::boolean, GgufKind::u32, value}; }
  static GgufValue text(std::string value) {
    return {GgufKind::text, GgufKind::u32, std::move(value)};
  }
  static GgufValue texts(std::vector<std::string> values) {
    return {GgufKind::list, GgufKind::text, std::move(values)};
  }
  static GgufValue i32s(std::vector<int64_t> values) {
    return {GgufKind::list, GgufKind::i32, std::move(values)};
  }
  static GgufValue f32s(std::vector<double> values) {
    return {GgufKind::list, GgufKind::f32, std::move(values)};
  }

  bool operator==(const GgufValue&) const = default;
};

/** The keys of a file in their order. */
using GgufKeys = std::vector<std::pair<std::string, GgufValue>>;
/** nullptr where there is no such key. */
const GgufValue* find_key(const GgufKeys& keys, std::string_view key);

/** One tensor of an open file. `bytes` lives as long as the file object. */
struct GgufTensor {
  std::string name;
  GgufType type = GgufType::f32;
  std::vector<int64_t> shape;  ///< row-major: the file has it the other way round
  std::span<const std::byte> bytes;

  int64_t columns() const { return shape.back(); }
  int64_t rows() const;
  /** The values of a row, (columns). */
  void read_row(int64_t row, std::span<float> values) const;
};

class GgufFile {
 public:
  /** Maps the file and checks it. Error(data) that says what is wrong: no GGUF file, cut off, of
   * another version or byte order, a type that Ferry does not read, sizes that cannot be, a tensor
   * outside of the file or over another one. */
  static GgufFile open(const std::filesystem::path& path);

  const GgufKeys& keys() const { return keys_; }
  /** In the order of their bytes in the file. */
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  /** nullptr where the file has no such tensor. */
  const GgufTensor* find(std::string_view name) const;
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  explicit GgufFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  GgufKeys keys_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace ferry
