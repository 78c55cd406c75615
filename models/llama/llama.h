#pragma once
// LLaMA 1 to 3 (Touvron et al. 2023, Grattafiori et al. 2024), and models that are built the same
// way, such as SmolLM2 and TinyLlama. Torch-free.

#include "models/family.h"

namespace ferry {

Family llama_family();

}  // namespace ferry
