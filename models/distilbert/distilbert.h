#pragma once
// DistilBERT (Sanh et al. 2019): a BERT of half the layers, without types of tokens. Torch-free.

#include "models/family.h"

namespace ferry {

Family distilbert_family();

}  // namespace ferry
