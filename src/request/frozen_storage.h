#pragma once
// The storage of frozen matrices while adapters are trained (options quantization and
// double_quantization): fewer bits made at load, or the blocks that the model's files have.

#include <string>
#include <vector>

#include "models/core/tensor_table.h"
#include "src/config/config.h"
#include "src/files/hf/hf_config.h"

namespace ferry {

/** Gives frozen matrices of the layers that linear maps alone read the storage that the settings
 * ask for. Throws Error(usage) where none can have it. */
void store_frozen(const config::Config& config, ModelTable& model);

/** Sentences that say how frozen matrices are stored and what that saves, and that a model of
 * quantised files is trained as the values which they stand for. */
std::vector<std::string> storage_notes(const config::Config& config,
                                       const HfConfig& files,
                                       const ModelTable& model);

}  // namespace ferry
