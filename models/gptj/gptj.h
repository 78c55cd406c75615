#pragma once
// GPT-J (Wang and Komatsuzaki 2021): one LayerNorm before attention and MLP, which read the same
// input; rotary positions on pairs of neighbours. Torch-free.

#include "models/family.h"

namespace ferry {

Family gptj_family();

}  // namespace ferry
