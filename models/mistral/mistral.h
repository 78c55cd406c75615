#pragma once
// Mistral (Jiang et al. 2023): LLaMA with a window. Torch-free.

#include "models/family.h"

namespace ferry {

Family mistral_family();

}  // namespace ferry
