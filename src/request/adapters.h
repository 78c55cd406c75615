#pragma once
// Adapters of a run: those that its settings ask for (option tuning), and those of a directory in
// PEFT's format.

#include "models/core/tensor_table.h"
#include "src/config/config.h"
#include "src/files/hf/hf_directory.h"

namespace ferry {

/** Freezes the model and gives it what the settings ask for. Nothing where tuning is full. Throws
 * Error(usage) that names the nearest module where one is not in the model. */
void add_adapters(const config::Config& config, ModelTable& model);

/** adapter_config.json of a run with such settings. */
PeftConfig peft_config_of(const config::Config& config, const ModelTable& model);

/** Gives a model the adapter that lies in the directory: modules and ranks are those of its file.
 * Nothing where none does. */
void add_adapter_of(const HfDirectory& directory, ModelTable& model);

}  // namespace ferry
