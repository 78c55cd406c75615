#pragma once
// BERT with its heads: parameters, Hugging Face names, and the program of every block. Torch-free.

#include "models/bert/bert_config.h"
#include "models/family.h"

namespace ferry {

/** BERT has every kind of head but that of a decoder. */
Family bert_family();

/** Blocks: "embeddings", "layer.0", ..., "head". */
ModelTable make_bert_table(const BertConfig& config, const TableOptions& options);

}  // namespace ferry
