#pragma once
// The names of an adapter's tensors, and the model that stays as it is beside one. Torch-free.

#include <functional>
#include <string>

#include "models/core/tensor_table.h"

namespace ferry {

/** PEFT's names of an adapter's tensors: the prefix, the module, and an end of each kind. */
inline constexpr const char* kPeftPrefix = "base_model.model.";

/** The module of a tensor: its name without ".weight". */
std::string module_of(const HfEntry& entry);

/** True of a tensor that is trained whole and saved beside the adapters. */
using IsWhole = std::function<bool(const HfEntry&)>;

/** Freezes every parameter that is not trained whole, and gives the others PEFT's names. The run
 * then saves these tensors and those of adapters. */
void freeze_model(ModelTable& model, const IsWhole& is_whole);

}  // namespace ferry
