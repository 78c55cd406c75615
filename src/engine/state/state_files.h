#pragma once
// Master weights and the optimizer's states as safetensors under the parameters' Hugging Face
// names: written block by block while steps go on, read back into the segments, every tensor under
// a checksum. Torch-free; src/train/checkpoint says where the files lie.

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "models/core/tensor_table.h"
#include "offload/executor/executor.h"
#include "offload/store/generation_reader.h"
#include "offload/store/stored_states.h"
#include "src/engine/state/file_order.h"
#include "src/engine/state/segments.h"
#include "src/engine/state/weights.h"
#include "src/files/hf/checkpoint_reader.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/safetensors/tensor_checksums.h"
#include "src/files/write/write_behind.h"

namespace ferry {

/** A checkpoint holds saved_segments(); the weights are the master, rounded. The master is fp32
 * however the run keeps it, under the parameters' Hugging Face names, and for frozen weights that
 * have none the values they were loaded from; so are fp32 and bf16 states
 * in their type, which have Ferry's order of elements where the weights have the file's. A block of
 * 8-bit states may hold parts of two Hugging Face tensors, so these are one tensor of codes for
 * each parameter of the table, "layer.0.attention.qkv.weight", and one of exponents, with
 * ".exponents" behind that name. A table of words in pieces is one tensor in each file, so a run
 * that has it in other pieces, or whole, reads it. */
inline constexpr size_t kSavedSegments_max = 1 + simd::kStates_max;

/** The states in a checkpoint's files: all, or those that no generation on a drive has. Then the
 * master is no model of itself and lies in state/ too, and parts of a tensor of which the drive has
 * others are tensors of their own. */
enum class FilesHold : uint8_t { all, what_no_drive_has };

/** The states of a run that its shape has on a drive, by the names that files give them. */
StoredStates stored_states_of(const ModelTable& model, const StepShape& shape);

/** The files of one checkpoint while they are being written. */
class StateWriter {
 public:
  /** Declares every tensor and reserves the space. Bytes are in `behind`, which outlives the
   * writer, until they are on the disk. Throws Error(machine). */
  StateWriter(const ModelTable& model,
              const StepShape& shape,
              const FrozenWeights& frozen,
              const std::filesystem::path& checkpoint,
              int64_t max_shard_bytes,
              WriteBehind& behind,
              FilesHold holds = FilesHold::all);
  /** Takes all of one block, on the save queue: waits for the disk only where no slot is free. */
  void write(StateSource& block);
  /** Puts all files safely on disk under their names. Call it when every block is written. Returns
   * the checksums by stem. Throws Error(data) where frozen weights are no longer what was loaded.
   */
  const std::map<std::string, TensorChecksums>& finish();
  /** The bytes of all tensors in the files. */
  int64_t n_bytes() const { return n_bytes_; }

 private:
  /** A tensor of a segment's files, or the rows of one that a block holds. */
  struct Stored {
    TensorPart part;                 ///< of the file
    ByteRange range;                 ///< of the segment, as StatePiece counts
    const HfEntry* entry = nullptr;  ///< of a master
  };

  void write(StateSource& block, size_t segment);
  /** The file has the master's values in another order, and they do not come from a file. */
  bool is_reordered(const std::string& name) const {
    return orders_.contains(name) && !(without_master_.contains(name) && frozen_.has(name));
  }
  /** Fills pieces of a reordered tensor's file that follow each other. */
  void gather(StateSource& block, const Stored& stored, std::span<const StatePiece> pieces) const;
  /** Parts of a tensor that has no master, in Ferry's order, as the run rounded them. */
  void read_rounded(StateSource& block,
                    const Stored& stored,
                    std::span<const FileOrder::Part> parts) const;
  /** The same of another storage than compute. */
  void read_stored(StateSource& block,
                   const HfEntry& entry,
                   std::span<const FileOrder::Part> parts) const;
  /** A piece of a tensor that has no master. */
  void read_frozen(StateSource& block, const Stored& stored, const StatePiece& piece) const;

  /** "adam_m" */
  std::string stem_of(size_t segment) const;

  const ModelTable& model_;
  const StepShape& shape_;
  const std::span<const Segment> segments_;
  const FrozenWeights& frozen_;
  const FilesHold holds_;
  int64_t n_bytes_ = 0;
  std::unordered_set<std::string> without_master_;  // names
  // The tensors of each block by segment, in the order of the files.
  std::array<std::vector<std::vector<Stored>>, kSavedSegments_max> stored_;
  std::unordered_map<std::string, FileOrder> orders_;  // of the master's files, where not ours
  /** As segments_; none where there is nothing to write. */
  std::array<std::optional<CheckpointWriter>, kSavedSegments_max> writers_;
  /** By segment, tensor and the first byte of a part. */
  struct PartChecksum {
    uint32_t checksum = 0;
    int64_t n_bytes = 0;
  };
  std::array<std::map<std::pair<std::string, int64_t>, PartChecksum>, kSavedSegments_max>
      checksums_of_parts_;
  std::map<std::string, TensorChecksums> checksums_;
};

/** The generation of a checkpoint whose files hold what_no_drive_has. */
struct DriveSource {
  const StoredStates* about = nullptr;
  /** Null: the run's own store begins with the generation, and the shape has the same blocks there;
   * they are left as they are. */
  GenerationReader* reader = nullptr;
};

/** Fills these of saved_segments(); with the master the weights. Throws Error(data) naming the
 * tensor that is missing, of another shape, or whose bytes are not those of `checksums`; of a
 * generation as GenerationReader::read(). */
void load_states(const ModelTable& model,
                 const StepShape& shape,
                 const std::filesystem::path& checkpoint,
                 const std::map<std::string, TensorChecksums>& checksums,
                 std::span<const Segment> which,
                 Segments& segments,
                 const DriveSource* drive = nullptr);

/** Writes the master of such a checkpoint as a model's weights, then reads them back and compares
 * every byte. */
void copy_master(const ModelTable& model,
                 const std::filesystem::path& checkpoint,
                 const std::map<std::string, TensorChecksums>& checksums,
                 const DriveSource& drive,
                 const std::filesystem::path& to);

}  // namespace ferry
