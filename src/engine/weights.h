#pragma once
// Hugging Face in, Hugging Face out: fills the segments from a checkpoint by the model's name map
// (missing heads are initialised from the seed) and writes them back under the same names.
// Torch-free.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/tensor_table.h"
#include "src/engine/segments.h"
#include "src/files/checkpoint_reader.h"

namespace ferry {

struct LoadReport {
  std::vector<std::string> initialised;  ///< HF names that the checkpoint lacks
  /// tensors of a classifier's head that the checkpoint has for another number of labels: name and
  /// both shapes
  std::vector<std::string> redrawn;
  std::vector<std::string> unused;  ///< names in the checkpoint that the model does not know
};

/** Throws Error(data) that names tensor and both shapes where they differ, a missing tensor that is
 * not optional, or a tensor with a value that is NaN, infinite or beyond the type of compute. A
 * head for another number of labels is drawn anew and reported. */
LoadReport load_weights(const ModelTable& model,
                        const CheckpointReader& checkpoint,
                        uint64_t seed,
                        Segments& segments);

/** Every parameter from its Init and the seed; the same values whatever the placement. */
void initialise_weights(const ModelTable& model, uint64_t seed, Segments& segments);

/** CRC-32C of each tensor's bytes, by its name in the file. */
using TensorChecksums = std::map<std::string, uint32_t>;

/** model.safetensors (or shards) in `directory`, fp32 by default, sorted as Hugging Face does. In
 * pieces of at most 256 KiB: nothing is allocated that grows with the model. */
TensorChecksums save_weights(const ModelTable& model,
                             const Segments& segments,
                             const std::filesystem::path& directory,
                             DType dtype,
                             int64_t max_shard_bytes);

/** One of the optimizer's segments (adam_m, adam_v) under the parameters' names, fp32: files of the
 * segment's name. */
TensorChecksums save_states(const ModelTable& model,
                            const Segments& segments,
                            Segment segment,
                            const std::filesystem::path& directory,
                            int64_t max_shard_bytes);
/** The other way. Throws Error(data) naming the tensor that is missing, of another shape, or whose
 * bytes are not those of `checksums`. */
void load_states(const ModelTable& model,
                 const std::filesystem::path& directory,
                 Segment segment,
                 const TensorChecksums& checksums,
                 Segments& segments);
/** Throws Error(data) that names the first tensor whose bytes are not those of `checksums`. */
void check_checksums(const CheckpointReader& checkpoint, const TensorChecksums& checksums);

}  // namespace ferry
