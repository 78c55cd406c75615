#pragma once
// OPT (Zhang et al. 2022): LayerNorms before attention and MLP, ReLU, learned positions.
// Torch-free.

#include "models/family.h"

namespace ferry {

Family opt_family();

}  // namespace ferry
