#pragma once
// The weights of a model directory behind one interface: `model.safetensors`, or shards with
// `model.safetensors.index.json`, or else the same of `pytorch_model.bin`, or `model.gguf`. A path
// comes in; tensors by name, as stored or as fp32, go out. The trainer's weight loading, export and
// evaluation call it.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/error.h"
#include "src/files/gguf/gguf.h"
#include "src/files/pickle/torch_file.h"
#include "src/files/safetensors/safetensors.h"

namespace ferry {

inline constexpr std::string_view kWeightsName = "model.safetensors";
inline constexpr std::string_view kWeightsIndexName = "model.safetensors.index.json";
/** What transformers wrote before safetensors; read where there is nothing else. */
inline constexpr std::string_view kTorchWeightsName = "pytorch_model.bin";
inline constexpr std::string_view kTorchIndexName = "pytorch_model.bin.index.json";
/** In the directory that is made of a GGUF file (src/files/gguf/gguf_directory.h). */
inline constexpr std::string_view kGgufWeightsName = "model.gguf";
/** The same for files of another stem than "model". */
inline std::string weights_name(std::string_view stem) {
  return std::string(stem) + ".safetensors";
}
inline std::string weights_index_name(std::string_view stem) {
  return weights_name(stem) + ".index.json";
}

/** Reads a checkpoint of one or more files, of safetensors or of torch.save, or of a GGUF file.
 * Tensors that are quantised are there with the values that they stand for.
 *
 *   auto reader = CheckpointReader::open("models/minilm");
 *   const int64_t shape[] = {30522, 384};
 *   const std::string name = "embeddings.word_embeddings.weight";
 *   reader.read_f32(reader.get(name, shape),  // throws if absent or of another shape
 *                   [&](std::span<const float> values, int64_t first_element) { ... });
 */
class CheckpointReader {
 public:
  /** `path`: a model directory, or one .safetensors or .bin file, or an index. Every shard is
   * opened and checked at once. Error(data): no weights there; a shard missing; a tensor the index
   * lists absent from its shard; a tensor in two shards. */
  static CheckpointReader open(const std::filesystem::path& path, std::string_view stem = "model");

  /** Shard by shard, in the order of their bytes. */
  const std::vector<const StoredTensor*>& tensors() const { return tensors_; }
  /** nullptr when the checkpoint has no such tensor. Any type, also those Ferry does not read. */
  const StoredTensor* find(std::string_view name) const;
  /** Error(data) when absent or of a type that Ferry does not read. */
  const StoredTensor& get(std::string_view name) const;
  /** get(), and Error(data) with both shapes when the tensor has another than expected. */
  const StoredTensor& get(std::string_view name, std::span<const int64_t> shape) const;

  using TakeBytes = std::function<void(std::span<const std::byte>, size_t first_byte)>;
  using TakeValues = std::function<void(std::span<const float>, int64_t first_element)>;
  /** Over a tensor in order, pieces of at most 2 MiB, each with its place in the tensor. A piece's
   * pages leave the process after its call: what is read does not count as memory besides what is
   * made of it. */
  void read(const StoredTensor& tensor, const TakeBytes& take) const {
    read(tensor, 0, tensor.n_bytes(), take);
  }
  /** The same over some of its bytes, whole elements. */
  void read(const StoredTensor& tensor,
            int64_t first_byte,
            int64_t n_bytes,
            const TakeBytes& take) const;
  /** The same as fp32. Exact but for F64, whose values are rounded. Error(data) where the tensor is
   * not of F64, F32, F16 or BF16. */
  void read_f32(const StoredTensor& tensor, const TakeValues& take) const {
    read_f32(tensor, 0, tensor.n_elements(), take);
  }
  void read_f32(const StoredTensor& tensor,
                int64_t first_element,
                int64_t n_elements,
                const TakeValues& take) const;

  /** The values from first_element on; any thread may ask. The caller releases the pages. */
  static void read_part(const StoredTensor& tensor, int64_t first_element, std::span<float> values);

  /** Lets the kernel drop the pages under some of a tensor's bytes from this process; they come
   * back when read again. read() does so itself. */
  static void release_pages(const StoredTensor& tensor, std::span<const std::byte> bytes);
  static void release_pages(const StoredTensor& tensor, int64_t first_element, int64_t n_elements);

  /** Throws Error(machine) where a tensor that was written has other bytes from first_byte on.
   * Their pages leave the process. */
  static void check_written(const StoredTensor& written,
                            size_t first_byte,
                            std::span<const std::byte> bytes);
  static Error reads_back_differently(const std::string& tensor);

  /** A CRC of all names, types and shapes, and of the first and last 64 KiB of each tensor: another
   * training of the same model changes it, another place of its files does not. */
  uint32_t sample_crc() const;
  /** All tensors together. */
  int64_t total_bytes() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  CheckpointReader() = default;

  void add_file(const std::filesystem::path& path);
  void add_gguf(const std::filesystem::path& path);
  void read_rounded(const StoredTensor& tensor,
                    int64_t first_byte,
                    int64_t n_bytes,
                    const TakeBytes& take) const;
  /** Replaces each tensor that bitsandbytes has quantised by a tensor with its values. */
  void dequantise();

  std::filesystem::path path_;
  std::vector<SafetensorsFile> safetensors_;
  std::vector<TorchFile> torch_files_;
  std::vector<GgufFile> gguf_files_;
  std::deque<StoredTensor> dequantised_, of_gguf_;
  std::vector<const StoredTensor*> tensors_;
  std::unordered_map<std::string_view, const StoredTensor*> index_;      // keys lie in the tensors
  std::unordered_map<std::string_view, std::filesystem::path> file_of_;  // by name
};

/** Raw little-endian F64, F32, F16 or BF16 bytes, aligned or not, as fp32. Plain and scalar: simd/
 * has the fast ones. */
void convert_to_f32(StoredType type, std::span<const std::byte> bytes, std::span<float> out);

}  // namespace ferry
