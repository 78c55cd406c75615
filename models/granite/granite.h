#pragma once
// Granite 3 (IBM 2024): LLaMA with factors of words, scores, branches and logits. Torch-free.

#include "models/family.h"

namespace ferry {

Family granite_family();

}  // namespace ferry
