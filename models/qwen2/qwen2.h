#pragma once
// Qwen 2 and 2.5 (Yang et al. 2024): LLaMA with biases of queries, keys and values. Torch-free.

#include "models/family.h"

namespace ferry {

Family qwen2_family();

}  // namespace ferry
