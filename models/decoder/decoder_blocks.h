#pragma once
// The blocks of decoders as code (private to models). decoder_table.h declares what each takes,
// saves and needs; make_block of models/block.h picks one.

#include <memory>

#include "models/block.h"
#include "models/decoder/decoder_table.h"

namespace ferry::decoder {

/** The settings that every block's code takes from the model's table. */
struct BlockSettings {
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  float norm_eps = 0;
  double rope_theta = 0;
  AttentionBackend attention = AttentionBackend::cpu_math;
  float hidden_dropout = 0;
  float attention_dropout = 0;
};

/** Words, and positions where the block has a table of them; dropout. */
std::unique_ptr<Block> make_embeddings(const BlockSettings& settings);
/** Pre-norm layer with rotary positions, grouped heads and a gated MLP. */
std::unique_ptr<Block> make_llama_layer(const BlockSettings& settings);
/** Pre-norm layer with biases, dropout and GELU (the exact form). */
std::unique_ptr<Block> make_gpt2_layer(const BlockSettings& settings);
/** The last norm, the vocabulary, and cross entropy with the next token. */
std::unique_ptr<Block> make_llama_head(const BlockSettings& settings);
std::unique_ptr<Block> make_gpt2_head(const BlockSettings& settings);

}  // namespace ferry::decoder
