#pragma once
// Gemma 1 (2024), 2 (2024) and 3 (2025, text). Norms count from one, embeddings are scaled, gates
// are GELU. Gemma 2 norms each branch and caps scores and logits; Gemma 3 norms heads. Torch-free.

#include "models/family.h"

namespace ferry {

Family gemma_family();
Family gemma2_family();
Family gemma3_family();

}  // namespace ferry
