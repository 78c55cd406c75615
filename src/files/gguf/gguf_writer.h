#pragma once
// Writes a GGUF file: keys and tensors are declared first, so that the header is final and the
// space is reserved, then rows of the tensors stream in. Nothing appears under the file's name
// before everything is safe on disk. `ferry export --format gguf` calls it.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/files/gguf/gguf.h"
#include "src/files/write/atomic_file.h"

namespace ferry {

struct GgufTensorSpec {
  std::string name;
  GgufType type = GgufType::f32;
  std::vector<int64_t> shape;  ///< row-major
};

/** One file.
 *
 *   GgufWriter writer("model.gguf", keys, {{"output_norm.weight", GgufType::f32, {64}}});
 *   writer.write("output_norm.weight", values);    // as often as it takes
 *   writer.finish();
 *
 * Without finish() nothing is left. Full disk, no permission: Error(machine). */
class GgufWriter {
 public:
  GgufWriter(const std::filesystem::path& path,
             const GgufKeys& keys,
             const std::vector<GgufTensorSpec>& tensors);

  /** The next values of the tensor, whole blocks, in the type of the tensor. */
  void write(std::string_view name, std::span<const float> values);
  /** The next blocks of the tensor, as they are in memory: of any type. */
  void write_blocks(std::string_view name, std::span<const std::byte> blocks);

  /** The file appears; a tensor that is not complete is our own bug. */
  void finish();

 private:
  struct Progress {
    GgufType type = GgufType::f32;
    int64_t next_bytes = 0, end_bytes = 0;  ///< places in the file
  };

  Progress& progress_of(std::string_view name, int64_t n_bytes);

  AtomicFile file_;
  std::unordered_map<std::string, Progress> progress_;
  std::vector<std::byte> encoded_;
};

}  // namespace ferry
