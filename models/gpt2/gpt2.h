#pragma once
// GPT-2 (Radford et al. 2019). Torch-free.

#include "models/family.h"

namespace ferry {

Family gpt2_family();

}  // namespace ferry
