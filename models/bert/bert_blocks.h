#pragma once
// The blocks of BERT as code (private to models/bert). bert_table.h declares what each takes, saves
// and needs; make_block of models/block.h picks one.

#include <memory>

#include "models/block.h"

namespace ferry::bert {

/** The settings that every block's code takes from the model's table. */
struct BlockSettings {
  int64_t n_heads = 0;
  float norm_eps = 0;
  AttentionBackend attention = AttentionBackend::cpu_math;
  float hidden_dropout = 0;
  float attention_dropout = 0;
  float head_dropout = 0;
};

std::unique_ptr<Block> make_embeddings(const BlockSettings& settings);
/** Post-norm encoder layer. */
std::unique_ptr<Block> make_layer(const BlockSettings& settings);
/** Pooler, dropout, classifier; loss cross_entropy, multi_label or regression. */
std::unique_ptr<Block> make_classifier(const BlockSettings& settings, LossKind loss);
/** Dropout and a classifier of each token; cross entropy over the tokens that have a label. */
std::unique_ptr<Block> make_token_classifier(const BlockSettings& settings);
/** Logits of each token as the answer's start and end; cross entropy over each sequence's tokens.
 */
std::unique_ptr<Block> make_question_answering();
/** Transform, and the vocabulary through the embeddings' own matrix. */
std::unique_ptr<Block> make_masked_lm(const BlockSettings& settings);

}  // namespace ferry::bert
