#pragma once
// StableLM 2 and 3B (Stability AI): LLaMA's build with LayerNorms, a part of each head turned, and
// branches that may be parallel. Torch-free.

#include "models/family.h"

namespace ferry {

Family stablelm_family();

}  // namespace ferry
