#pragma once
// The tensor tables of decoder-only transformers by their shape: parameters, Hugging Face names,
// saved tensors and scratch of every block. Two families: Llama's layers (RMSNorm, rotary
// positions, grouped heads, gated MLP, no biases) and GPT-2's (LayerNorm, learned positions, GELU,
// biases). Torch-free; llama_layer.cpp, gpt2_layer.cpp and decoder_ends.cpp compute what is
// declared here, and index parameters and saved tensors by the enums below.

#include <cstdint>

#include "models/tensor_table.h"

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

struct DecoderTableOptions {
  DType compute = DType::f32;
  AttentionBackend attention = AttentionBackend::cpu_math;
  /** Decides what the backward pass of flash attention allocates. It is more than any GPU has, so
   * that a plan holds on all of them. */
  int gpu_multiprocessors = 192;
};

/** Blocks: "embeddings", "layer.0", ..., "head"; the head gives the loss of the next token. A shape
 * that the operations cannot compute is our bug: FERRY_CHECK. */
ModelTable make_decoder_table(const DecoderConfig& config, const DecoderTableOptions& options);

// Shapes that Ferry is measured with.

/** Llama's layers: 3,015 M parameters. */
DecoderConfig llama_3g();
/** GPT-2's layers: 12,845 M parameters. */
DecoderConfig gpt2_13g();

namespace decoder {

// Parameters and saved tensors by their place in the block. W: width, Q: of queries, keys and
// values in one row, F: intermediate size, V: vocabulary.
namespace embeddings {
enum Param {
  word,      // (V, W)
  position,  // (positions, W), GPT-2 alone
};
}  // namespace embeddings

namespace llama_layer {
enum Param {
  attention_norm_weight,  // (W)
  qkv_weight,             // (Q, W)
  output_weight,          // (W, W)
  mlp_norm_weight,        // (W)
  gate_up_weight,         // (2F, W): gate, up
  down_weight,            // (W, F)
};
enum Saved {
  attention_rstd,   // (T) fp32
  qkv,              // (T, Q), queries and keys turned by their positions
  context,          // (T, W): what attention gives
  sum,              // (T, W): input plus attention, before the second norm
  mlp_rstd,         // (T) fp32
  gate_up,          // (T, 2F)
  attention_state,  // the tensors that attention itself keeps; one or two
                    // (models/ops/scratch_sizes.h)
};
}  // namespace llama_layer

namespace gpt2_layer {
enum Param {
  attention_norm_weight,  // (W)
  attention_norm_bias,    // (W)
  qkv_weight,             // (3W, W)
  qkv_bias,               // (3W)
  output_weight,          // (W, W)
  output_bias,            // (W)
  mlp_norm_weight,        // (W)
  mlp_norm_bias,          // (W)
  up_weight,              // (F, W)
  up_bias,                // (F)
  down_weight,            // (W, F)
  down_bias,              // (W)
};
enum Saved {
  attention_mean,  // (T) fp32
  attention_rstd,  // (T) fp32
  qkv,             // (T, 3W)
  context,         // (T, W)
  sum,             // (T, W)
  mlp_mean,        // (T) fp32
  mlp_rstd,        // (T) fp32
  up,              // (T, F): before gelu
  attention_state,
};
}  // namespace gpt2_layer

/** `word` is the head's own or borrowed from the embeddings. */
namespace llama_head {
enum Param { norm_weight, word };
enum Saved {
  rstd,  // (T) fp32
  lse,   // (T) fp32: log of the sum of exponentials of a row's logits
};
}  // namespace llama_head
namespace gpt2_head {
enum Param { norm_weight, norm_bias, word };
enum Saved { mean, rstd, lse };  // (T) fp32
}  // namespace gpt2_head

/** Operations of a block that draw random numbers: RandomKey::of takes these. */
enum Operation { embedding_dropout, attention_probs, attention_output, layer_output };

}  // namespace decoder
}  // namespace ferry
