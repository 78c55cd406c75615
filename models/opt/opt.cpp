#include "models/opt/opt.h"

#include <fmt/format.h>

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"
#include "models/encoder/encoder_blocks.h"

namespace ferry {
namespace {

/** The first two rows of the table of positions are of padding. */
constexpr int64_t kPositionOffset = 2;

GptLayer layer_of(int64_t index) {
  const std::string hf = fmt::format("model.decoder.layers.{}.", index), self = hf + "self_attn.";
  return {.attention_norm = hf + "self_attn_layer_norm",
          .mlp_norm = hf + "final_layer_norm",
          .output = self + "out_proj",
          .up = hf + "fc1",
          .down = hf + "fc2",
          .qkv = {self + "q_proj", self + "k_proj", self + "v_proj"}};
}

/** OPT-350m's, whose norms come after the sums, as an encoder's do. */
EncoderLayer layer_with_norms_behind(int64_t index, const DecoderConfig& opt) {
  const GptLayer names = layer_of(index);
  return {.width = opt.hidden_size,
          .intermediate = opt.intermediate_size,
          .n_heads = opt.num_attention_heads,
          .activation = opt.activation,
          .is_causal = true,
          .query = names.qkv[0],
          .key = names.qkv[1],
          .value = names.qkv[2],
          .attention_output = names.output,
          .attention_norm = names.attention_norm,
          .up = names.up,
          .down = names.down,
          .norm = names.mlp_norm};
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  expect_on(config, "enable_bias");
  expect_on(config, "layer_norm_elementwise_affine");
  expect_on(config, "tie_word_embeddings");
  expect_off(config, "_remove_final_layer_norm");
  expect_off(config, "layerdrop");
  DecoderConfig opt = {.family = DecoderFamily::gpt2, .name = "opt"};
  opt.stem = "OPT";
  opt.vocab_size = config.integer("vocab_size", 1, kVocabMax, 50272);
  opt.padding_row = read_padding_row(config, opt.vocab_size, 1);
  opt.hidden_size = config.integer("hidden_size", 1, kWidthMax, 768);
  const int64_t word_width = config.integer("word_embed_proj_dim", 1, kWidthMax, opt.hidden_size);
  opt.num_hidden_layers = config.integer("num_hidden_layers", 1, kLayersMax, 12);
  opt.num_attention_heads = config.integer("num_attention_heads", 1, kHeadsMax, 12);
  opt.num_key_value_heads = opt.num_attention_heads;
  opt.intermediate_size = config.integer("ffn_dim", 1, kIntermediateMax, 3072);
  opt.max_position_embeddings = config.integer("max_position_embeddings", 1, kPositionsMax, 2048);
  opt.hidden_dropout = read_dropout(config, "dropout", 0.1f);
  opt.attention_dropout = read_dropout(config, "attention_dropout", 0);
  pass_over(config, {"activation_dropout"});
  pass_over(config, {"init_std"});  // initializer_range comes before it
  opt.initializer_range =
      read_init_std(config, config.find("initializer_range") ? "initializer_range" : "init_std");
  opt.activation = read_activation(config, "activation_function", Activation::relu);
  expect_divides(config, "num_attention_heads", opt.num_attention_heads, "hidden_size",
                 opt.hidden_size);

  const bool norms_before = config.flag("do_layer_norm_before", true);
  const auto projection = [&](const char* name) {
    return word_width == opt.hidden_size ? "" : std::string("model.decoder.") + name;
  };

  ModelTable model = start_decoder(opt, options);
  ModelBuilder builder(model, "model.", options.gpu_multiprocessors, options.cut);
  add_decoder_embeddings(builder, model,
                         {.word = "model.decoder.embed_tokens.weight",
                          .position = "model.decoder.embed_positions.weight",
                          .rule = {.position_offset = kPositionOffset},
                          .drops = false,
                          .projection = projection("project_in"),
                          .word_width = word_width});
  for (int64_t i = 0; i < opt.num_hidden_layers; ++i) {
    if (norms_before)
      add_gpt_layer(builder, i, layer_of(i), opt, model);
    else
      add_encoder_layer(builder, i, layer_with_norms_behind(i, opt), model);
  }
  add_decoder_head(builder, model,
                   {.norm = norms_before ? "model.decoder.final_layer_norm" : "",
                    .projection = projection("project_out"),
                    .word_width = word_width,
                    .is_tied = true});
  leave_other_logits(model, {"lm_head.weight"});
  return model;
}

}  // namespace

Family opt_family() {
  return {
      .model_type = "opt", .is_decoder = true, .heads = DecoderHeads::kWithoutTags, .table = make};
}

}  // namespace ferry
