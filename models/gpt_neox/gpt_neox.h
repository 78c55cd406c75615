#pragma once
// GPT-NeoX and Pythia (Black et al. 2022): attention and MLP read the same input, rotary positions
// on a part of each head. Torch-free.

#include "models/family.h"

namespace ferry {

Family gpt_neox_family();

}  // namespace ferry
