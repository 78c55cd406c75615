#pragma once
// One safetensors file, read in place: u64 header length, JSON header, tensor bytes. The header is
// checked in full when the file is opened, so that every span handed out later lies inside the
// file. Whoever reads a whole model uses src/files/hf/checkpoint_reader.h, which stands on this.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/dtype.h"
#include "src/files/mapped_file.h"

namespace ferry {

/** Element types the format knows, in the format's own order of alignment (files are written in
 * descending order). Ferry reads and writes those of `dtype_of`; the others are listed and refused
 * when asked for. */
enum class StoredType : uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

/** As the file spells it: "F32", "BF16". */
std::string_view name_of(StoredType type);
std::optional<StoredType> parse_stored_type(std::string_view name);
int64_t bits_of(StoredType type);
/** Ferry's type of the same bytes, or nullopt when it has none. */
std::optional<DType> dtype_of(StoredType type);
StoredType stored_type_of(DType type);

/** "[30522, 384]". */
std::string format_shape(std::span<const int64_t> shape);

class TensorCodes;  // src/files/tensor_codes.h

/** One tensor of an open file. `bytes` lives as long as the file object and may be unaligned. Where
 * there are strides they are more than the tensor's own: from its first element to its last. */
struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  std::vector<int64_t> strides = {};  ///< in elements; none: row-major, without gaps
  /** Its values are made of these, and `bytes` are theirs; null: it is not quantised. */
  std::shared_ptr<const TensorCodes> codes = {};

  int64_t n_elements() const;
  int64_t n_bytes() const;  ///< of the elements alone
};

class SafetensorsFile {
 public:
  /** Maps the file and checks it. Error(data): missing, truncated, or against the format; nothing
   * is guessed. */
  static SafetensorsFile open(const std::filesystem::path& path);

  /** In the order of their bytes in the file. */
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /** nullptr when the file has no such tensor. */
  const StoredTensor* find(std::string_view name) const;
  /** `__metadata__`, empty when absent. */
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string, size_t> index_;  // name -> place in tensors_
  std::map<std::string, std::string> metadata_;
};

}  // namespace ferry
