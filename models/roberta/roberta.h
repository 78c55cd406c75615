#pragma once
// RoBERTa (Liu et al. 2019), and the models that transformers builds the same way. Torch-free.

#include "models/family.h"

namespace ferry {

Family roberta_family();
Family xlm_roberta_family();
Family camembert_family();

}  // namespace ferry
