#include "models/gpt_neox/gpt_neox.h"

#include <fmt/format.h>

#include <utility>

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

void add_layer(ModelBuilder& builder,
               int64_t index,
               const DecoderConfig& config,
               const ModelTable& model) {
  const int64_t W = config.hidden_size, F = config.intermediate_size;
  const int64_t H = config.num_attention_heads, D = model.head_width;
  const BlockBuilder::Heads heads = {.n_heads = H, .n_kv_heads = H, .head_width = D};
  const std::string hf = fmt::format("gpt_neox.layers.{}.", index), self = hf + "attention.";
  BlockBuilder b = builder.block(fmt::format("layer.{}", index), BlockKind::layer);
  const ParamId attention_norm_weight =
      b.norm_weight("attention.norm.weight", W, {hf + "input_layernorm.weight"});
  const ParamId attention_norm_bias =
      b.bias("attention.norm.bias", W, {hf + "input_layernorm.bias"});
  // A file has query, key and value of each head together.
  const HfRowGroups by_head = {.n_groups = H, .part_rows = {D, D, D}};
  const ParamId qkv_weight = b.matrix("attention.qkv.weight", 3 * W, W,
                                      {.name = self + "query_key_value.weight", .groups = by_head});
  const auto bias = [&](const char* name, int64_t n, HfName its) {
    return config.qkv_bias ? b.bias(name, n, std::move(its)) : kNone;
  };
  const ParamId qkv_bias =
      bias("attention.qkv.bias", 3 * W, {.name = self + "query_key_value.bias", .groups = by_head});
  const ParamId output_weight = b.matrix("attention.output.weight", W, W, {self + "dense.weight"});
  const ParamId output_bias = bias("attention.output.bias", W, {self + "dense.bias"});
  const ParamId mlp_norm_weight =
      b.norm_weight("mlp.norm.weight", W, {hf + "post_attention_layernorm.weight"});
  const ParamId mlp_norm_bias = b.bias("mlp.norm.bias", W, {hf + "post_attention_layernorm.bias"});
  const ParamId up_weight = b.matrix("mlp.up.weight", F, W, {hf + "mlp.dense_h_to_4h.weight"});
  const ParamId up_bias = b.bias("mlp.up.bias", F, {hf + "mlp.dense_h_to_4h.bias"});
  const ParamId down_weight = b.matrix("mlp.down.weight", W, F, {hf + "mlp.dense_4h_to_h.weight"});
  const ParamId down_bias = b.bias("mlp.down.bias", W, {hf + "mlp.dense_4h_to_h.bias"});

  const float p = model.hidden_dropout, eps = model.norm_eps;
  const ValueId x = b.input();  // (T, W)
  const ValueId normed =
      b.norm("attention.norm", x, attention_norm_weight, attention_norm_bias, eps);
  const ValueId qkv = b.rotary(
      "attention.qkv",
      b.linear_to_ranks("attention.qkv", normed, qkv_weight, qkv_bias, b.shared_qkv(heads)),
      b.heads_of_rank(heads), rope_table(*config.rope));  // (T, 3W)
  const ValueId context =
      b.attention("attention.context", qkv, b.heads_of_rank(heads), /*causal=*/true,
                  model.attention_dropout, decoder_attention_probs);
  const ValueId output = b.linear_from_ranks("output", context, output_weight);
  const auto mlp = [&](ValueId mlp_normed) {
    const auto [up, activated] = b.activated_to_ranks("mlp.activated", "mlp.up", config.activation,
                                                      mlp_normed, up_weight, up_bias);
    b.recompute(up);  // (T, F)
    return b.linear_from_ranks("down", activated, down_weight);
  };
  if (!config.is_parallel) {
    const auto [sum, mlp_normed] =
        b.residual_norm("sum", "mlp.norm", output, output_bias, x, mlp_norm_weight, mlp_norm_bias,
                        eps, p, decoder_attention_output);
    return b.end(b.dropout_residual("y", mlp(mlp_normed), down_bias, sum, p, decoder_layer_output));
  }
  const ValueId down = mlp(b.norm("mlp.norm", x, mlp_norm_weight, mlp_norm_bias, eps));
  const ValueId sum =
      b.dropout_residual("sum", output, output_bias, x, p, decoder_attention_output);
  b.end(b.dropout_residual("y", down, down_bias, sum, p, decoder_layer_output));
}

DecoderConfig read(const JsonReader& config, const TableOptions&) {
  pass_over(config, {"is_decoder"});  // it is one in any case
  DecoderConfig neox = {.family = DecoderFamily::gpt2, .name = "gpt_neox"};
  neox.stem = "GPTNeoX";
  neox.vocab_size = config.integer("vocab_size", 1, kVocabMax, 50432);
  neox.hidden_size = config.integer("hidden_size", 1, kWidthMax);
  neox.num_hidden_layers = config.integer("num_hidden_layers", 1, kLayersMax);
  neox.num_attention_heads = config.integer("num_attention_heads", 1, kHeadsMax);
  neox.num_key_value_heads = neox.num_attention_heads;
  neox.intermediate_size = config.integer("intermediate_size", 1, kIntermediateMax);
  neox.max_position_embeddings = config.integer("max_position_embeddings", 1, kPositionsMax, 2048);
  neox.norm_eps = read_eps(config, "layer_norm_eps", 1e-5f);
  neox.hidden_dropout = read_dropout(config, "hidden_dropout", 0);
  neox.attention_dropout = read_dropout(config, "attention_dropout", 0);
  neox.head_dropout = read_dropout(config, "classifier_dropout", 0.1f);
  neox.initializer_range = read_init_std(config);
  neox.activation = read_activation(config, "hidden_act", Activation::gelu);
  expect_divides(config, "num_attention_heads", neox.num_attention_heads, "hidden_size",
                 neox.hidden_size);
  const int64_t D = neox.hidden_size / neox.num_attention_heads;
  pass_over(config, {"rope_theta", "partial_rotary_factor"});
  neox.rope = read_rope(config, find_rope(config), D, neox.max_position_embeddings,
                        {.theta_key = "rotary_emb_base",
                         .partial_key = "rotary_pct",
                         .partial = 0.25,
                         .turns_part = true});
  neox.is_parallel = config.flag("use_parallel_residual", true);
  neox.qkv_bias = neox.output_bias = config.flag("attention_bias", true);
  neox.tie_word_embeddings = config.flag("tie_word_embeddings", false);
  return neox;
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  const DecoderConfig neox = read(config, options);
  ModelTable model = start_decoder(neox, options);
  ModelBuilder builder(model, "gpt_neox.", options.gpu_multiprocessors, options.cut);
  add_decoder_embeddings(builder, model, {.word = "gpt_neox.embed_in.weight"});
  for (int64_t i = 0; i < neox.num_hidden_layers; ++i)
    add_layer(builder, i, neox, model);
  add_decoder_head(builder, model,
                   {.norm = "gpt_neox.final_layer_norm",
                    .vocabulary = "embed_out",
                    .is_tied = neox.tie_word_embeddings});
  leave_other_logits(model, {"embed_out.weight"});
  return model;
}

constexpr std::string_view kOldBuffers[] = {".attention.bias", ".attention.masked_bias",
                                            ".rotary_emb.inv_freq"};

}  // namespace

Family gpt_neox_family() {
  return {.model_type = "gpt_neox",
          .is_decoder = true,
          .heads = DecoderHeads::kAll,
          .old_buffers = kOldBuffers,
          .table = make,
          .decoder = read};
}

}  // namespace ferry
