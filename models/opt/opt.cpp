#include "models/opt/opt.h"

#include <fmt/format.h>

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

/** The first two rows of the table of positions are of padding. */
constexpr int64_t kPositionOffset = 2;

void add_embeddings(ModelBuilder& builder, const ModelTable& model) {
  const int64_t W = model.width;
  const std::string hf = "model.decoder.";
  BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
  const ParamId word = b.matrix("word.weight", model.vocab_size, W, {hf + "embed_tokens.weight"});
  const ParamId position = b.matrix("position.weight", model.max_positions + kPositionOffset, W,
                                    {hf + "embed_positions.weight"});
  b.end(b.embedding("sum", word, position, kNone, {.position_offset = kPositionOffset}));
}

void add_layer(ModelBuilder& builder,
               int64_t index,
               const DecoderConfig& config,
               const ModelTable& model) {
  const int64_t W = config.hidden_size, F = config.intermediate_size;
  const BlockBuilder::Heads heads = {.n_heads = config.num_attention_heads,
                                     .n_kv_heads = config.num_attention_heads,
                                     .head_width = model.head_width};
  const std::string hf = fmt::format("model.decoder.layers.{}.", index), self = hf + "self_attn.";
  BlockBuilder b = builder.block(fmt::format("layer.{}", index), BlockKind::layer);
  const ParamId attention_norm_weight =
      b.norm_weight("attention.norm.weight", W, {hf + "self_attn_layer_norm.weight"});
  const ParamId attention_norm_bias =
      b.bias("attention.norm.bias", W, {hf + "self_attn_layer_norm.bias"});
  const ParamId qkv_weight = b.matrix("attention.qkv.weight", W,
                                      {{{self + "q_proj.weight"}, W},
                                       {{self + "k_proj.weight"}, W},
                                       {{self + "v_proj.weight"}, W}});
  const ParamId qkv_bias = b.bias(
      "attention.qkv.bias",
      {{{self + "q_proj.bias"}, W}, {{self + "k_proj.bias"}, W}, {{self + "v_proj.bias"}, W}});
  const ParamId output_weight =
      b.matrix("attention.output.weight", W, W, {self + "out_proj.weight"});
  const ParamId output_bias = b.bias("attention.output.bias", W, {self + "out_proj.bias"});
  const ParamId mlp_norm_weight =
      b.norm_weight("mlp.norm.weight", W, {hf + "final_layer_norm.weight"});
  const ParamId mlp_norm_bias = b.bias("mlp.norm.bias", W, {hf + "final_layer_norm.bias"});
  const ParamId up_weight = b.matrix("mlp.up.weight", F, W, {hf + "fc1.weight"});
  const ParamId up_bias = b.bias("mlp.up.bias", F, {hf + "fc1.bias"});
  const ParamId down_weight = b.matrix("mlp.down.weight", W, F, {hf + "fc2.weight"});
  const ParamId down_bias = b.bias("mlp.down.bias", W, {hf + "fc2.bias"});

  const ValueId x = b.input();  // (T, W)
  const ValueId normed =
      b.norm("attention.norm", x, attention_norm_weight, attention_norm_bias, model.norm_eps);
  const ValueId qkv = b.linear("attention.qkv", normed, qkv_weight, qkv_bias);  // (T, 3W)
  const ValueId context = b.attention("attention.context", qkv, heads, /*causal=*/true,
                                      model.attention_dropout, decoder_attention_probs);
  const auto [sum, mlp_normed] =
      b.residual_norm("sum", "mlp.norm", b.linear("output", context, output_weight), output_bias, x,
                      mlp_norm_weight, mlp_norm_bias, model.norm_eps, model.hidden_dropout,
                      decoder_attention_output);
  const auto [up, activated] = b.activation("mlp.activated", config.activation,
                                            b.linear("mlp.up", mlp_normed, up_weight), up_bias);
  b.recompute(up);  // (T, F)
  b.end(b.dropout_residual("y", b.linear("down", activated, down_weight), down_bias, sum,
                           model.hidden_dropout, decoder_layer_output));
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  expect_on(config, "do_layer_norm_before", "norms behind the branches (OPT-350m) are not built");
  expect_on(config, "enable_bias");
  expect_on(config, "layer_norm_elementwise_affine");
  expect_on(config, "tie_word_embeddings");
  expect_off(config, "_remove_final_layer_norm");
  expect_off(config, "layerdrop");
  DecoderConfig opt = {.family = DecoderFamily::gpt2, .name = "opt"};
  opt.stem = "OPT";
  opt.vocab_size = config.integer("vocab_size", 1, kVocabMax, 50272);
  opt.hidden_size = config.integer("hidden_size", 1, kWidthMax, 768);
  if (config.integer("word_embed_proj_dim", 1, kWidthMax, opt.hidden_size) != opt.hidden_size)
    config.at("word_embed_proj_dim")
        .refuse(fmt::format("hidden_size = {}", opt.hidden_size),
                "narrower embeddings (OPT-350m) are not built");
  opt.num_hidden_layers = config.integer("num_hidden_layers", 1, kLayersMax, 12);
  opt.num_attention_heads = config.integer("num_attention_heads", 1, kHeadsMax, 12);
  opt.num_key_value_heads = opt.num_attention_heads;
  opt.intermediate_size = config.integer("ffn_dim", 1, kIntermediateMax, 3072);
  opt.max_position_embeddings = config.integer("max_position_embeddings", 1, kPositionsMax, 2048);
  opt.hidden_dropout = read_dropout(config, "dropout", 0.1f);
  opt.attention_dropout = read_dropout(config, "attention_dropout", 0);
  config.find("activation_dropout");  // of older files; transformers does not read it
  opt.initializer_range = read_init_std(config, "init_std");
  opt.activation = read_activation(config, "activation_function", Activation::relu);
  expect_divides(config, "num_attention_heads", opt.num_attention_heads, "hidden_size",
                 opt.hidden_size);

  ModelTable model = start_decoder(opt, options);
  ModelBuilder builder(model, "model.", options.gpu_multiprocessors);
  add_embeddings(builder, model);
  for (int64_t i = 0; i < opt.num_hidden_layers; ++i)
    add_layer(builder, i, opt, model);
  add_decoder_head(builder, model, {.norm = "model.decoder.final_layer_norm"});
  model.hf_ignored.push_back("lm_head.weight");
  return model;
}

}  // namespace

Family opt_family() {
  return {.model_type = "opt", .is_decoder = true, .heads = kDecoderHeads, .table = make};
}

}  // namespace ferry
