#pragma once
// ELECTRA (Clark et al. 2020): BERT's layers on embeddings that may be narrower. Its masked
// language model is the generator. Torch-free.

#include "models/family.h"

namespace ferry {

Family electra_family();

}  // namespace ferry
