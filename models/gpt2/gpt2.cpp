#include "models/gpt2/gpt2.h"

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

DecoderConfig read(const JsonReader& config, const TableOptions& options) {
  expect_on(config, "scale_attn_weights");
  expect_on(config, "tie_word_embeddings");
  expect_off(config, "scale_attn_by_inverse_layer_idx");
  expect_off(config, "reorder_and_upcast_attn");
  expect_off(config, "add_cross_attention");
  DecoderConfig gpt = {.family = DecoderFamily::gpt2, .name = "gpt2"};
  gpt.stem = "GPT2";
  gpt.vocab_size = config.integer("vocab_size", 1, kVocabMax, 50257);
  gpt.hidden_size = config.integer("n_embd", 1, kWidthMax, 768);
  gpt.num_hidden_layers = config.integer("n_layer", 1, kLayersMax, 12);
  gpt.num_attention_heads = config.integer("n_head", 1, kHeadsMax, 12);
  gpt.num_key_value_heads = gpt.num_attention_heads;
  gpt.intermediate_size = config.integer("n_inner", 1, kIntermediateMax, 4 * gpt.hidden_size);
  gpt.max_position_embeddings = config.integer("n_positions", 1, kPositionsMax, 1024);
  pass_over(config, {"n_ctx", "n_special", "predict_special_tokens"});  // of older files
  gpt.tie_word_embeddings = true;
  gpt.norm_eps = read_eps(config, "layer_norm_epsilon", 1e-5f);
  gpt.hidden_dropout = read_dropout(config, "resid_pdrop", 0.1f);
  gpt.attention_dropout = read_dropout(config, "attn_pdrop", 0.1f);
  if (const float embeddings = read_dropout(config, "embd_pdrop", 0.1f);
      embeddings != gpt.hidden_dropout && !options.hidden_dropout)
    config.at("embd_pdrop").refuse("the same as resid_pdrop", "set hidden_dropout");
  gpt.head_dropout = read_head_dropout(config, options, gpt.head_dropout);
  gpt.initializer_range = read_init_std(config);
  gpt.activation = read_activation(config, "activation_function", Activation::gelu_tanh);
  expect_divides(config, "n_head", gpt.num_attention_heads, "n_embd", gpt.hidden_size);
  return gpt;
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  return make_decoder(read(config, options), options);
}

constexpr std::string_view kOldBuffers[] = {".attn.bias", ".attn.masked_bias"};

}  // namespace

Family gpt2_family() {
  return {.model_type = "gpt2",
          .is_decoder = true,
          .heads = DecoderHeads::kAll,
          .old_buffers = kOldBuffers,
          .table = make,
          .decoder = read};
}

}  // namespace ferry
