#pragma once
// The tensors of a checkpoint's files: their names, and the bytes of the segments that they have.
// Private to the writing and loading of states.

#include <filesystem>
#include <string>
#include <vector>

#include "models/core/tensor_table.h"
#include "offload/step/layout.h"
#include "src/engine/state/state_files.h"

namespace ferry {

std::filesystem::path state_directory(const std::filesystem::path& checkpoint,
                                      Segment segment,
                                      FilesHold holds);
std::string state_stem(const ModelTable& model,
                       Segment segment,
                       simd::Optim optim,
                       FilesHold holds);

/** A tensor of a segment's files, or what a block holds of one. */
struct SavedTensor {
  TensorSpec spec;  ///< of the whole tensor
  int block = 0;
  ByteRange range;                 ///< bytes of the segment, as StatePiece counts
  const HfEntry* entry = nullptr;  ///< of a tensor of master weights
  int64_t first_byte = 0;          ///< of the tensor
  bool is_trained = true;
};

/** States of a frozen parameter are in no checkpoint: it has none. */
std::vector<SavedTensor> saved_tensors(const ModelTable& model,
                                       const StepShape& shape,
                                       Segment segment);
/** Those of them, or the parts, that no drive has. */
std::vector<SavedTensor> without_drive(const StepShape& shape, std::vector<SavedTensor> tensors);

/** A generation on a drive has it. */
bool is_on_drive(const StepShape& shape, const SavedTensor& tensor);
/** The name in files of a part whose tensor lies on a drive in part. */
std::string part_name(const std::string& tensor, int64_t first_byte);

}  // namespace ferry
