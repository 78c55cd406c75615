#pragma once
// RoBERTa (Liu et al. 2019), and its kin XLM-R and CamemBERT. Torch-free.

#include "models/family.h"

namespace ferry {

Family roberta_family();
Family xlm_roberta_family();
Family camembert_family();

}  // namespace ferry
