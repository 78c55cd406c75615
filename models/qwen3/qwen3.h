#pragma once
// Qwen 3 (Yang et al. 2025): LLaMA with an RMSNorm of each head of queries and keys. Torch-free.

#include "models/family.h"

namespace ferry {

Family qwen3_family();

}  // namespace ferry
