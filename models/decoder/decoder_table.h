#pragma once
// Decoder-only transformers: parameters, Hugging Face names, and the program of every block. Two
// families: Llama's layers (RMSNorm, rotary positions, grouped heads, gated MLP, no biases) and
// GPT-2's (LayerNorm, learned positions, GELU, biases). Torch-free.

#include <cstdint>

#include "models/family.h"

namespace ferry {

enum class DecoderFamily : uint8_t { llama, gpt2 };

/** Widths and counts as Hugging Face's LlamaConfig names them; GPT-2's are translated. */
struct DecoderConfig {
  DecoderFamily family = DecoderFamily::llama;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;  ///< a divisor of num_attention_heads; GPT-2 has as many
  int64_t intermediate_size = 0;
  int64_t max_position_embeddings = 0;
  bool tie_word_embeddings = false;  ///< the head's matrix is the embeddings'; GPT-2: always
  float norm_eps = 1e-5f;
  double rope_theta = 10000;    ///< Llama
  float hidden_dropout = 0;     ///< GPT-2: of embeddings and both residual branches
  float attention_dropout = 0;  ///< of attention probabilities
  float initializer_range = 0.02f;
};

/** Blocks: "embeddings", "layer.0", ..., "head"; the head gives the loss of the next token. A shape
 * that the operations cannot compute is our bug: FERRY_CHECK. */
ModelTable make_decoder_table(const DecoderConfig& config, const TableOptions& options);

// Shapes that Ferry is measured with.

/** Llama's layers: 3,015 M parameters. */
DecoderConfig llama_3g();
/** GPT-2's layers: 12,845 M parameters. */
DecoderConfig gpt2_13g();

}  // namespace ferry
