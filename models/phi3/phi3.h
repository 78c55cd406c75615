#pragma once
// Phi-3 and Phi-4 (Abdin et al. 2024): LLaMA with fused matrices in its files. Torch-free.

#include "models/family.h"

namespace ferry {

Family phi3_family();

}  // namespace ferry
