#include "src/files/hf/checkpoint_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/base/process/movement.h"
#include "src/files/gguf/gguf_tensors.h"
#include "src/files/hf/bitsandbytes.h"
#include "src/files/hf/mxfp4.h"

namespace ferry {
namespace {

namespace stdfs = std::filesystem;

constexpr size_t kPiece_bytes = 2 << 20;  // whole elements of every type
constexpr std::string_view kStem = "model";

struct ShardIndex {
  std::vector<std::string> shards;                // as they first appear, sorted by name
  std::map<std::string, std::string> weight_map;  // tensor -> shard
};

[[noreturn]] void refuse(std::string_view what, std::string_view hint = {}) {
  throw Error(Fault::data, "checkpoint.open", what, hint);
}

ShardIndex read_index(const stdfs::path& path) {
  const auto tree = JsonReader::parse(
      read_text_file(path), {path.string(), "checkpoint.open", "is the download complete?"});
  ShardIndex index;
  std::set<std::string> shards;
  for (const auto& [name, shard] : tree.at("weight_map").fields()) {
    const std::string file = shard.text();
    // A shard lies beside its index; a path that leads elsewhere is not followed.
    if (file.empty() || file == "." || file == ".." ||
        file.find_first_of(std::string_view("/\\\0", 3)) != file.npos)
      shard.fail(fmt::format("is '{}', which is no file's name", file));
    index.weight_map.emplace(name, file);
    shards.insert(file);
  }
  if (shards.empty()) refuse(fmt::format("'{}' lists no tensors", path.string()));
  index.shards.assign(shards.begin(), shards.end());
  return index;
}

float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {  // zero and subnormals: fraction x 2^-24, exact in fp32
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

/** To the nearest, ties to even; of finite values. */
uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
uint16_t f32_to_f16(float value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const float magnitude = std::fabs(value);
  constexpr float kOverflow = 65520.0f, kLeastNormal = 6.103515625e-05f;
  if (magnitude >= kOverflow) return sign | 0x7c00;
  if (magnitude < kLeastNormal)  // whole steps of 2^-24
    return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 24)));
  const auto bits = std::bit_cast<uint32_t>(magnitude);
  const uint32_t rounded = bits + 0xfff + ((bits >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - (uint32_t{112} << 23)) >> 13);
}

template <typename Word, typename Convert>
void convert_each(std::span<const std::byte> bytes, std::span<float> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    Word word;
    std::memcpy(&word, bytes.data() + i * sizeof word, sizeof word);
    out[i] = convert(word);
  }
}

/** Bytes of the elements in row-major order, of a tensor with strides, from first_byte on: whole
 * elements. */
void gather(const StoredTensor& tensor, size_t first_byte, std::span<std::byte> to) {
  const auto element_bytes = static_cast<size_t>(bits_of(tensor.type)) / 8;
  const size_t n_dims = tensor.shape.size();
  std::vector<int64_t> index(n_dims);
  auto rest = static_cast<int64_t>(first_byte / element_bytes);
  int64_t place = 0;  // in elements
  for (size_t i = n_dims; i-- > 0;) {
    index[i] = rest % tensor.shape[i];
    rest /= tensor.shape[i];
    place += index[i] * tensor.strides[i];
  }
  for (size_t at = 0; at < to.size(); at += element_bytes) {
    std::memcpy(to.data() + at, tensor.bytes.data() + static_cast<size_t>(place) * element_bytes,
                element_bytes);
    for (size_t i = n_dims; i-- > 0;) {
      if (++index[i] < tensor.shape[i]) {
        place += tensor.strides[i];
        break;
      }
      // Where there is one element the stride may be any number.
      place -= (tensor.shape[i] - 1) * tensor.strides[i];
      index[i] = 0;
    }
  }
}

/** A stored name that differs from the wanted one by a prefix ("bert."), for the message; empty
 * when none does. */
std::string similar_name(const std::vector<const StoredTensor*>& tensors, std::string_view name) {
  auto is_tail = [](std::string_view whole, std::string_view tail) {
    return whole.size() > tail.size() + 1 && whole.ends_with(tail) &&
           whole[whole.size() - tail.size() - 1] == '.';
  };
  for (const StoredTensor* tensor : tensors)
    if (is_tail(tensor->name, name) || is_tail(name, tensor->name)) return tensor->name;
  return {};
}

}  // namespace

void convert_to_f32(StoredType type, std::span<const std::byte> bytes, std::span<float> out) {
  FERRY_CHECK(bytes.size() * 8 == out.size() * static_cast<size_t>(bits_of(type)),
              "{} bytes of {} for {} floats", bytes.size(), name_of(type), out.size());
  if (out.empty()) return;
  switch (type) {
    case StoredType::f64:
      convert_each<double>(bytes, out, [](double value) { return static_cast<float>(value); });
      return;
    case StoredType::f32:
      std::memcpy(out.data(), bytes.data(), bytes.size());
      return;
    case StoredType::f16:
      convert_each<uint16_t>(bytes, out, f16_to_f32);
      return;
    case StoredType::bf16:
      convert_each<uint16_t>(bytes, out, [](uint16_t w) {
        return std::bit_cast<float>(static_cast<uint32_t>(w) << 16);
      });
      return;
    default:
      FERRY_CHECK(false, "{} has no conversion to fp32", name_of(type));
  }
}

/** Reads values of a quantised tensor, rounded to the nearest even of the type that it had. */
void CheckpointReader::read_rounded(const StoredTensor& tensor,
                                    int64_t first_byte,
                                    int64_t n_bytes,
                                    const TakeBytes& take) const {
  const int64_t element_bytes = bits_of(tensor.type) / 8;
  std::vector<std::byte> rounded;
  read_f32(tensor, first_byte / element_bytes, n_bytes / element_bytes,
           [&](std::span<const float> values, int64_t first_element) {
             rounded.resize(values.size() * static_cast<size_t>(element_bytes));
             if (tensor.type == StoredType::f32) {
               std::memcpy(rounded.data(), values.data(), rounded.size());
             } else {
               for (size_t i = 0; i < values.size(); ++i) {
                 const uint16_t word = tensor.type == StoredType::bf16 ? f32_to_bf16(values[i])
                                                                       : f32_to_f16(values[i]);
                 std::memcpy(rounded.data() + i * sizeof word, &word, sizeof word);
               }
             }
             take(rounded, static_cast<size_t>(first_element * element_bytes));
           });
}

CheckpointReader CheckpointReader::open(const stdfs::path& path, std::string_view stem) {
  CheckpointReader reader;
  reader.path_ = path;
  stdfs::path index_path;
  if (path_is_directory(path)) {
    const bool is_model = path_exists(path / weights_name(stem)) ||
                          path_exists(path / weights_index_name(stem)) || stem != kStem;
    const stdfs::path single =
        path / (is_model ? weights_name(stem) : std::string(kTorchWeightsName));
    index_path = path / (is_model ? weights_index_name(stem) : std::string(kTorchIndexName));
    const bool is_torch = path_exists(single) || path_exists(index_path);
    if (const stdfs::path gguf = path / kGgufWeightsName;
        !is_model && !is_torch && path_exists(gguf)) {
      reader.add_gguf(gguf);
      return reader;
    }
    if (path_exists(single)) {
      reader.add_file(single);
      reader.dequantise();
      return reader;
    }
    if (!path_exists(index_path))
      refuse(fmt::format("'{}' has neither {} nor {}{}", path.string(), weights_name(stem),
                         weights_index_name(stem), is_model ? "" : ", and no pytorch_model.bin"),
             "is the download complete?");
  } else if (path.extension() == ".json") {
    index_path = path;
  } else if (path.extension() == ".gguf") {
    reader.add_gguf(path);
    return reader;
  } else {
    reader.add_file(path);
    reader.dequantise();
    return reader;
  }

  ShardIndex index = read_index(index_path);
  for (const std::string& shard : index.shards) {
    stdfs::path shard_path = index_path.parent_path() / shard;
    if (!path_exists(shard_path))
      refuse(fmt::format("'{}' names the shard '{}', which is missing", index_path.string(), shard),
             "is the download complete?");
    reader.add_file(shard_path);
  }
  for (const auto& [name, shard] : index.weight_map) {
    auto found = reader.file_of_.find(name);
    if (found == reader.file_of_.end() || found->second.filename() != shard)
      refuse(fmt::format("'{}' says that tensor '{}' lies in '{}', which has no such tensor",
                         index_path.string(), name, shard),
             "index and shards are not of one export: fetch them again");
  }
  reader.dequantise();
  return reader;
}

void CheckpointReader::add_file(const stdfs::path& path) {
  // Moving a file keeps the addresses of its tensors.
  const bool is_torch = path.extension() == ".bin" || path.extension() == ".pt";
  const std::vector<StoredTensor>& added =
      is_torch ? torch_files_.emplace_back(TorchFile::open(path)).tensors()
               : safetensors_.emplace_back(SafetensorsFile::open(path)).tensors();
  for (const StoredTensor& tensor : added) {
    auto [place, is_new] = file_of_.emplace(tensor.name, path);
    if (!is_new)
      refuse(fmt::format("tensor '{}' is in '{}' and in '{}'", tensor.name, place->second.string(),
                         path.string()),
             "a tensor may be in one shard only: fetch or export the model again");
    index_.emplace(tensor.name, &tensor);
    tensors_.push_back(&tensor);
  }
}

void CheckpointReader::add_gguf(const stdfs::path& path) {
  // Codes point to the file's tensors: it stays where it is when the reader moves.
  const GgufFile& file = gguf_files_.emplace_back(GgufFile::open(path));
  of_gguf_ = gguf_tensors(file);
  for (const StoredTensor& tensor : of_gguf_) {
    if (!index_.emplace(tensor.name, &tensor).second)
      refuse(fmt::format("tensor '{}' is twice in '{}'", tensor.name, path.string()));
    tensors_.push_back(&tensor);
  }
}

void CheckpointReader::dequantise() {
  Dequantised found = dequantised(tensors_, path_.string());
  add_mxfp4(tensors_, path_.string(), found);
  if (found.tensors.empty()) return;
  dequantised_ = std::move(found.tensors);
  std::erase_if(tensors_,
                [&](const StoredTensor* tensor) { return found.used.contains(tensor->name); });
  for (const StoredTensor& tensor : dequantised_)
    tensors_.push_back(&tensor);
  index_.clear();
  for (const StoredTensor* tensor : tensors_)
    index_.emplace(tensor->name, tensor);
}

const StoredTensor* CheckpointReader::find(std::string_view name) const {
  auto found = index_.find(name);
  return found == index_.end() ? nullptr : found->second;
}

const StoredTensor& CheckpointReader::get(std::string_view name) const {
  const StoredTensor* tensor = find(name);
  if (!tensor) {
    std::string similar = similar_name(tensors_, name);
    throw Error(
        Fault::data, "checkpoint.read",
        fmt::format("'{}' has no tensor '{}' among its {}", path_.string(), name, tensors_.size()),
        similar.empty() ? "is it a model of another family?" : fmt::format("it has '{}'", similar));
  }
  if (!dtype_of(tensor->type) && tensor->type != StoredType::f64)
    throw Error(
        Fault::data, "checkpoint.read",
        fmt::format("'{}': tensor '{}' is of type {}, expected F64, F32, F16, BF16, I32, I64 or U8",
                    path_.string(), name, name_of(tensor->type)),
        "export the model with weights of one of these types");
  return *tensor;
}

const StoredTensor& CheckpointReader::get(std::string_view name,
                                          std::span<const int64_t> shape) const {
  const StoredTensor& tensor = get(name);
  if (!std::equal(tensor.shape.begin(), tensor.shape.end(), shape.begin(), shape.end()))
    throw Error(Fault::data, "checkpoint.read",
                fmt::format("'{}': tensor '{}' has shape {}, expected {}", path_.string(), name,
                            format_shape(tensor.shape), format_shape(shape)),
                "do config.json and the weights belong together?");
  return tensor;
}

void CheckpointReader::read(const StoredTensor& tensor,
                            int64_t first_byte,
                            int64_t n_bytes,
                            const TakeBytes& take) const {
  if (tensor.codes) return read_rounded(tensor, first_byte, n_bytes, take);
  const auto end = static_cast<size_t>(first_byte + n_bytes);
  std::vector<std::byte> gathered;
  for (auto at = static_cast<size_t>(first_byte); at < end; at += kPiece_bytes) {
    const size_t n = std::min(kPiece_bytes, end - at);
    if (tensor.strides.empty()) {
      const auto piece = tensor.bytes.subspan(at, n);
      take(piece, at);
      release_pages(tensor, piece);
    } else {
      gathered.resize(n);
      gather(tensor, at, gathered);
      release_pages(tensor, tensor.bytes);
      take(gathered, at);
    }
    note_movement();
  }
}

void CheckpointReader::read_f32(const StoredTensor& tensor,
                                int64_t first_element,
                                int64_t n_elements,
                                const TakeValues& take) const {
  if (tensor.type != StoredType::f64 && tensor.type != StoredType::f32 &&
      tensor.type != StoredType::f16 && tensor.type != StoredType::bf16)
    throw Error(Fault::data, "checkpoint.read",
                fmt::format("'{}': tensor '{}' is of type {}, expected F64, F32, F16 or BF16",
                            path_.string(), tensor.name, name_of(tensor.type)),
                "export the model with weights of one of these types");
  if (tensor.codes) {
    constexpr int64_t kPiece = static_cast<int64_t>(kPiece_bytes / sizeof(float));
    std::vector<float> of_codes;
    for (int64_t at = 0; at < n_elements; at += kPiece) {
      of_codes.resize(static_cast<size_t>(std::min(kPiece, n_elements - at)));
      read_part(tensor, first_element + at, of_codes);
      take(of_codes, first_element + at);
      release_pages(tensor, first_element + at, std::ssize(of_codes));
      note_movement();
    }
    return;
  }
  const size_t element_bytes = static_cast<size_t>(bits_of(tensor.type)) / 8;
  const auto bytes_of = [&](int64_t n) { return n * static_cast<int64_t>(element_bytes); };
  std::vector<float> values;
  read(tensor, bytes_of(first_element), bytes_of(n_elements),
       [&](std::span<const std::byte> bytes, size_t first_byte) {
         values.resize(bytes.size() / element_bytes);
         convert_to_f32(tensor.type, bytes, values);
         take(values, static_cast<int64_t>(first_byte / element_bytes));
       });
}

void CheckpointReader::read_part(const StoredTensor& tensor,
                                 int64_t first_element,
                                 std::span<float> values) {
  if (tensor.codes) return tensor.codes->values(first_element, values);
  const size_t element_bytes = static_cast<size_t>(bits_of(tensor.type)) / 8;
  if (!tensor.strides.empty()) {
    std::vector<std::byte> gathered(values.size() * element_bytes);
    gather(tensor, static_cast<size_t>(first_element) * element_bytes, gathered);
    convert_to_f32(tensor.type, gathered, values);
    return;
  }
  convert_to_f32(tensor.type,
                 tensor.bytes.subspan(static_cast<size_t>(first_element) * element_bytes,
                                      values.size() * element_bytes),
                 values);
}

void CheckpointReader::release_pages(const StoredTensor& tensor,
                                     int64_t first_element,
                                     int64_t n_elements) {
  if (tensor.codes) return release_pages(tensor, tensor.codes->bytes_of(first_element, n_elements));
  if (!tensor.strides.empty()) return release_pages(tensor, tensor.bytes);
  const size_t element_bytes = static_cast<size_t>(bits_of(tensor.type)) / 8;
  release_pages(tensor, tensor.bytes.subspan(static_cast<size_t>(first_element) * element_bytes,
                                             static_cast<size_t>(n_elements) * element_bytes));
}

void CheckpointReader::release_pages(const StoredTensor& tensor, std::span<const std::byte> bytes) {
  // Linux maps what is cached of the 64 KiB around each page that is touched: so also the end of
  // what was released before. Not from before the tensor on, which may be before the mapping.
  constexpr uintptr_t kAround = 64 << 10;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(tensor.bytes.data()) / page * page;
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t begin = std::max(first, address / kAround * kAround);
  const uintptr_t end = (address + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void CheckpointReader::check_written(const StoredTensor& written,
                                     size_t first_byte,
                                     std::span<const std::byte> bytes) {
  const auto beside = written.bytes.subspan(first_byte, bytes.size());
  if (std::memcmp(beside.data(), bytes.data(), bytes.size()) != 0)
    throw reads_back_differently(written.name);
  release_pages(written, beside);
}

Error CheckpointReader::reads_back_differently(const std::string& tensor) {
  return Error(Fault::machine, "export.check",
               fmt::format("tensor '{}' reads back differently", tensor), "check the disk");
}

uint32_t CheckpointReader::sample_crc() const {
  constexpr int64_t kSample_bytes = 64 << 10;  // a multiple of every element's size
  std::vector<const StoredTensor*> sorted = tensors_;
  std::ranges::sort(sorted, {}, &StoredTensor::name);
  uint32_t crc = 0;
  for (const StoredTensor* tensor : sorted) {
    const std::string text = fmt::format("{} {} {};", tensor->name, name_of(tensor->type),
                                         fmt::join(tensor->shape, "x"));
    crc = crc32c(std::as_bytes(std::span(text)), crc);
    const auto n_bytes = static_cast<int64_t>(tensor->n_bytes());
    const auto add = [&](std::span<const std::byte> bytes, size_t) { crc = crc32c(bytes, crc); };
    read(*tensor, 0, std::min(n_bytes, kSample_bytes), add);
    if (n_bytes > kSample_bytes) read(*tensor, n_bytes - kSample_bytes, kSample_bytes, add);
  }
  return crc;
}

int64_t CheckpointReader::total_bytes() const {
  int64_t total = 0;
  for (const StoredTensor* tensor : tensors_)
    total += tensor->n_bytes();
  return total;
}

}  // namespace ferry
