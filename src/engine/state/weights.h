#pragma once
// Hugging Face in, Hugging Face out: fills the segments from a checkpoint by the model's name map
// (missing heads are initialised from the seed) and writes them back under the same names.
// Torch-free.

#include <filesystem>
#include <string>
#include <vector>

#include "models/core/tensor_table.h"
#include "src/engine/state/segments.h"
#include "src/files/hf/checkpoint_reader.h"
#include "src/files/safetensors/safetensors_writer.h"

namespace ferry {

struct LoadReport {
  std::vector<std::string> initialised;  ///< HF names that the checkpoint lacks
  /// tensors of a classifier's head that the checkpoint has for another number of labels: name and
  /// both shapes
  std::vector<std::string> redrawn;
  std::vector<std::string> unused;  ///< names in the checkpoint that the model does not know
};

/** The stem of the files that a run writes its weights into: with adapters these alone. */
std::string_view weights_stem(const ModelTable& model);

/** Segments keep the checkpoint open where frozen weights have no master copy. Throws Error(data)
 * that names tensor and both shapes where they differ, a missing tensor that is
 * not optional, or a tensor with a value that is NaN, infinite or beyond the type of compute. A
 * head for another number of labels is drawn anew and reported. A tensor that neither the files nor
 * an adapter would have is an Error(data), too. `adapter`: the files of the model's
 * adapter; null: it begins, or the model has none. Error(data) where a tensor of an adapter has no
 * place in the model. */
LoadReport load_weights(const ModelTable& model,
                        CheckpointReader checkpoint,
                        uint64_t seed,
                        Segments& segments,
                        const CheckpointReader* adapter = nullptr);
/** Throws Error(data) where a tensor of an adapter's files has no place in its model: a part of the
 * adapter would be left out. */
void check_adapter(const ModelTable& model, const CheckpointReader& adapter);
/** Every parameter from its Init and the seed; the same values whatever the placement. */
void initialise_weights(const ModelTable& model, uint64_t seed, Segments& segments);

/** The place of a Hugging Face tensor in its block's segments, in elements. */
struct EntryExtent {
  int64_t begin = 0, n_elements = 0;
};
EntryExtent extent_of(const ModelTable& model, const HfEntry& entry);
/** The first element of the file's tensor that the entry has. */
int64_t first_element_of(const ModelTable& model, const HfEntry& entry);

/** Sets a parameter to a stored tensor, which has the entry's shape and lies in the file's order,
 * or to the entry's part of it. `look` sees all these values once before, in that order, with their
 * place in the tensor. A matrix that is stored as the file has it takes its codes. Takes 12 MiB of
 * memory at most. */
void read_entry(const ModelTable& model,
                const HfEntry& entry,
                const CheckpointReader& checkpoint,
                const StoredTensor& stored,
                const CheckpointReader::TakeValues& look,
                Segments& segments);

/** Every parameter that a run saves under its Hugging Face name, for a file of this type. */
std::vector<TensorSpec> hf_tensors(const ModelTable& model, DType dtype);

/** Writes model.safetensors (or shards; of adapters adapter_model.safetensors) in `directory`, fp32
 * by default, sorted as Hugging Face does. It writes pieces of at most 256 KiB, or 8 MiB where the
 * file has another order than ours: nothing is allocated that grows with the model. */
void save_weights(const ModelTable& model,
                  const Segments& segments,
                  const std::filesystem::path& directory,
                  DType dtype,
                  int64_t max_shard_bytes);

}  // namespace ferry
