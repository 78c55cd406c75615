#pragma once
// Finds what is wrong with a training before it starts, without LibTorch: for `ferry train
// --dry-run` and the app's review of a run.

#include "src/config/config.h"
#include "src/service/tell.h"

namespace ferry::service {

/** Throws Error(data) where there is neither a checkpoint that the run goes on from nor a model
 * that it can begin with. */
void check_model(const config::Config& config);

/** Throws Error(usage) for a pattern of freeze, param_groups, lora_targets or modules_to_save that
 * names nothing, before any data is read. */
void check_patterns(const config::Config& config);

/** Finds what the trainer would stumble over: a model or a tokenizer that is missing or of another
 * family, data that cannot be read, a directory in use. Reads all of the data; `tell` hears what
 * they were taken for. Throws Error. */
void check_training(const config::Config& config, const Tell& tell);

}  // namespace ferry::service
