#include "models/gptj/gptj.h"

#include <fmt/format.h>

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

void add_layer(ModelBuilder& builder,
               int64_t index,
               const DecoderConfig& config,
               const ModelTable& model) {
  const int64_t W = config.hidden_size, F = config.intermediate_size;
  const int64_t H = config.num_attention_heads;
  const BlockBuilder::Heads heads = {.n_heads = H, .n_kv_heads = H, .head_width = model.head_width};
  const std::string hf = fmt::format("transformer.h.{}.", index), self = hf + "attn.";
  BlockBuilder b = builder.block(fmt::format("layer.{}", index), BlockKind::layer);
  const ParamId norm_weight = b.norm_weight("norm.weight", W, {hf + "ln_1.weight"});
  const ParamId norm_bias = b.bias("norm.bias", W, {hf + "ln_1.bias"});
  const ParamId qkv_weight = b.matrix("attention.qkv.weight", W,
                                      {{{self + "q_proj.weight"}, W},
                                       {{self + "k_proj.weight"}, W},
                                       {{self + "v_proj.weight"}, W}});
  const ParamId output_weight =
      b.matrix("attention.output.weight", W, W, {self + "out_proj.weight"});
  const ParamId up_weight = b.matrix("mlp.up.weight", F, W, {hf + "mlp.fc_in.weight"});
  const ParamId up_bias = b.bias("mlp.up.bias", F, {hf + "mlp.fc_in.bias"});
  const ParamId down_weight = b.matrix("mlp.down.weight", W, F, {hf + "mlp.fc_out.weight"});
  const ParamId down_bias = b.bias("mlp.down.bias", W, {hf + "mlp.fc_out.bias"});

  const float p = model.hidden_dropout;
  const ValueId x = b.input();  // (T, W)
  const ValueId normed = b.norm("norm", x, norm_weight, norm_bias, model.norm_eps);
  const ValueId qkv =
      b.rotary("attention.qkv",
               b.linear_to_ranks("attention.qkv", normed, qkv_weight, kNone, b.shared_qkv(heads)),
               b.heads_of_rank(heads), rope_table(*config.rope), /*interleaved=*/true);
  const ValueId context =
      b.attention("attention.context", qkv, b.heads_of_rank(heads), /*causal=*/true,
                  model.attention_dropout, decoder_attention_probs);
  const ValueId output = b.linear_from_ranks("output", context, output_weight);
  const auto [up, activated] = b.activated_to_ranks("mlp.activated", "mlp.up", config.activation,
                                                    normed, up_weight, up_bias);
  b.recompute(up);  // (T, F)
  const ValueId down = b.linear_from_ranks("down", activated, down_weight);
  const ValueId sum = b.dropout_residual("sum", output, kNone, x, p, decoder_attention_output);
  b.end(b.dropout_residual("y", down, down_bias, sum, p, decoder_layer_output));
}

ModelTable make(const JsonReader& config, const TableOptions& options) {
  DecoderConfig gpt = {.family = DecoderFamily::gpt2, .name = "gptj"};
  gpt.stem = "GPTJ";
  gpt.vocab_size = config.integer("vocab_size", 1, kVocabMax, 50400);
  gpt.hidden_size = config.integer("n_embd", 1, kWidthMax, 4096);
  gpt.num_hidden_layers = config.integer("n_layer", 1, kLayersMax, 28);
  gpt.num_attention_heads = config.integer("n_head", 1, kHeadsMax, 16);
  gpt.num_key_value_heads = gpt.num_attention_heads;
  gpt.intermediate_size = config.integer("n_inner", 1, kIntermediateMax, 4 * gpt.hidden_size);
  gpt.max_position_embeddings = config.integer("n_positions", 1, kPositionsMax, 2048);
  gpt.norm_eps = read_eps(config, "layer_norm_epsilon", 1e-5f);
  gpt.hidden_dropout = read_dropout(config, "resid_pdrop", 0);
  if (const float embeddings = read_dropout(config, "embd_pdrop", 0);
      embeddings != gpt.hidden_dropout && !options.hidden_dropout)
    config.at("embd_pdrop").refuse("the same as resid_pdrop", "set hidden_dropout");
  gpt.attention_dropout = read_dropout(config, "attn_pdrop", 0);
  gpt.initializer_range = read_init_std(config);
  gpt.activation = read_activation(config, "activation_function", Activation::gelu_tanh);
  expect_on(config, "scale_attn_weights");
  pass_over(config, {"rotary"});
  expect_divides(config, "n_head", gpt.num_attention_heads, "n_embd", gpt.hidden_size);
  const int64_t D = gpt.hidden_size / gpt.num_attention_heads;
  gpt.rope = RopeSpec{.width = config.integer("rotary_dim", 2, D, 64)};
  if (const char* what = refused_rope(*gpt.rope)) config.at("rotary_dim").fail(what);
  const bool is_tied = config.flag("tie_word_embeddings", false);

  ModelTable model = start_decoder(gpt, options);
  ModelBuilder builder(model, "transformer.", options.gpu_multiprocessors, options.cut);
  add_decoder_embeddings(builder, model, {.word = "transformer.wte.weight"});
  for (int64_t i = 0; i < gpt.num_hidden_layers; ++i)
    add_layer(builder, i, gpt, model);
  add_decoder_head(builder, model,
                   {.norm = "transformer.ln_f", .is_tied = is_tied, .has_bias = true});
  leave_other_logits(model, {"lm_head.weight", "lm_head.bias"});
  return model;
}

constexpr std::string_view kOldBuffers[] = {".attn.bias", ".attn.masked_bias",
                                            ".attn.embed_positions"};

}  // namespace

Family gptj_family() {
  return {.model_type = "gptj",
          .is_decoder = true,
          .heads = DecoderHeads::kWithoutTags,
          .old_buffers = kOldBuffers,
          .table = make};
}

}  // namespace ferry
