#pragma once
// Writes safetensors: tensors are declared first, so that the header is final and the space is
// reserved, then their bytes stream in, in any order and any pieces. Nothing appears under its
// final name before everything is safe on disk. Export and checkpoints call it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/dtype.h"
#include "src/files/safetensors/safetensors.h"
#include "src/files/write/atomic_file.h"

namespace ferry {

/** Where a checkpoint is split into files, as transformers splits. */
inline constexpr int64_t kShard_bytes_max = 5'000'000'000;

/** A tensor of a file; one that is copied as it is may be of a type that Ferry does not compute. */
struct TensorSpec {
  TensorSpec(std::string its_name, DType dtype, std::vector<int64_t> its_shape)
      : TensorSpec(std::move(its_name), stored_type_of(dtype), std::move(its_shape)) {}
  TensorSpec(std::string its_name, StoredType stored, std::vector<int64_t> its_shape)
      : name(std::move(its_name)), type(stored), shape(std::move(its_shape)) {}

  std::string name;
  StoredType type;
  std::vector<int64_t> shape;
};

/** Some of a declared tensor's bytes. */
struct TensorPart {
  std::string name;
  int64_t first_byte = 0, n_bytes = 0;
};

/** The metadata that `transformers` writes and looks for. */
inline const std::map<std::string, std::string> kTorchMetadata = {{"format", "pt"}};

/** One file.
 *
 *   SafetensorsWriter writer("out/model.safetensors", {{"weight", DType::f32, {2, 3}}});
 *   writer.write("weight", piece);      // as often as it takes
 *   writer.finish();
 *
 *  Without finish() nothing is left. Full disk, no permission: Error(machine). */
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path,
                    std::vector<TensorSpec> tensors,
                    const std::map<std::string, std::string>& metadata = kTorchMetadata);

  /** The next bytes of the tensor. */
  void write(std::string_view name, std::span<const std::byte> piece);
  /** Bytes of the tensor from first_byte on. Each byte is written once. */
  void write_at(std::string_view name, int64_t first_byte, std::span<const std::byte> piece);

  /** From now on tensors come through fill() alone, and go past the page cache
   * (AtomicFile::write_directly). */
  void write_directly(WriteBehind& behind) { file_.write_directly(behind); }
  /** These bytes, one part after the other: `fill` is called until all are filled. Parts that
   * follow each other in the file make one run. */
  void fill(std::span<const TensorPart> parts, const FillParts& fill);
  void end_run() { file_.end_run(); }
  /** The bytes are complete and safe under the temporary name; a tensor that is not complete is our
   * own bug. */
  void seal();
  /** seal(), and the file appears. */
  void finish();

  int64_t tensor_bytes() const { return tensor_bytes_; }

 private:
  struct Progress {
    int64_t begin_bytes, next_bytes, end_bytes;  // places in the file
  };
  Progress& progress_of(std::string_view name);
  /** The place in the file of these bytes of the tensor, which count as written from now on. */
  int64_t take(std::string_view name, int64_t first_byte, int64_t n_bytes);

  AtomicFile file_;
  std::unordered_map<std::string, Progress> progress_;
  int64_t tensor_bytes_ = 0;
};

/** A model directory's weights: `model.safetensors`, or, above max_shard_bytes,
 * model-00001-of-0000n.safetensors and the index that names them; another `stem` for other tensors
 * of the same names, such as a state of the optimizer. All files appear together at
 * finish(), the index last; weights of an earlier export are removed then. A tensor larger than a
 * shard gets one of its own. */
class CheckpointWriter {
 public:
  CheckpointWriter(std::filesystem::path directory,
                   const std::vector<TensorSpec>& tensors,
                   int64_t max_shard_bytes,
                   std::string stem = "model");

  void write(std::string_view name, std::span<const std::byte> piece);
  /** See SafetensorsWriter. */
  void write_at(std::string_view name, int64_t first_byte, std::span<const std::byte> piece);
  void write_directly(WriteBehind& behind);
  void fill(std::span<const TensorPart> parts, const FillParts& fill);
  void end_run() { shards_[filled_].end_run(); }
  void finish();

  /** The names of the weight files, without the index. */
  const std::vector<std::string>& file_names() const { return file_names_; }

 private:
  size_t shard_of(std::string_view name) const;

  std::filesystem::path directory_;
  std::string stem_;
  std::vector<std::string> file_names_;
  std::vector<SafetensorsWriter> shards_;
  std::unordered_map<std::string, size_t> shard_of_;  // tensor -> place in shards_
  size_t filled_ = 0;  // the shard that fill() was last at: the others have no open run
};

}  // namespace ferry
