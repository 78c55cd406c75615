#pragma once
// The options freeze, param_groups and layerwise_lr_decay, applied to a model's parameters by their
// Hugging Face names. `ferry plan`, `ferry train` and its --dry-run go through it.

#include "models/core/tensor_table.h"
#include "src/config/config.h"

namespace ferry {

/** Sets ParamSpec::trainable, ParamSpec::group and ModelTable::groups. A pattern is a glob over the
 * whole name, or over another name that checkpoints use for it: `*` any text, `?` one character,
 * `[0-3]` one of these, `[!0-3]` one of the others. Throws Error(usage) for a pattern that names
 * nothing, for a part of a fused parameter, and where nothing is left to train. */
void apply_param_options(const config::Config& config, ModelTable& model);

}  // namespace ferry
