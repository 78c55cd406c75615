#include "models/decoder/decoder_table.h"

#include <fmt/format.h>

#include "models/core/block_builder.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Operations that draw random numbers. */
enum Random { embedding_dropout, attention_probs, attention_output, layer_output };

BlockBuilder::Heads heads_of(const DecoderConfig& config) {
  return {.n_heads = config.num_attention_heads,
          .n_kv_heads = config.num_key_value_heads,
          .head_width = config.hidden_size / config.num_attention_heads};
}

void add_embeddings(ModelBuilder& builder, const DecoderConfig& config, const ModelTable& model) {
  const bool is_llama = config.family == DecoderFamily::llama;
  BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
  const ParamId word =
      b.matrix("word.weight", config.vocab_size, config.hidden_size,
               {is_llama ? "model.embed_tokens.weight" : "transformer.wte.weight"});
  const ParamId position = is_llama ? kNone
                                    : b.matrix("position.weight", config.max_position_embeddings,
                                               config.hidden_size, {"transformer.wpe.weight"});

  const ValueId sum = b.embedding("sum", word, position, kNone);
  b.end(b.dropout("dropped", sum, model.hidden_dropout, embedding_dropout));
}

void add_llama_layer(ModelBuilder& builder, int64_t index, const DecoderConfig& config) {
  const int64_t W = config.hidden_size, F = config.intermediate_size;
  const BlockBuilder::Heads heads = heads_of(config);
  const int64_t kv = heads.n_kv_heads * heads.head_width;
  const std::string hf = fmt::format("model.layers.{}.", index);
  BlockBuilder b = builder.block(fmt::format("layer.{}", index), BlockKind::layer);
  const ParamId attention_norm =
      b.norm_weight("attention.norm.weight", W, {hf + "input_layernorm.weight"});
  const ParamId qkv_weight = b.matrix("attention.qkv.weight", W,
                                      {{{hf + "self_attn.q_proj.weight"}, W},
                                       {{hf + "self_attn.k_proj.weight"}, kv},
                                       {{hf + "self_attn.v_proj.weight"}, kv}});
  const ParamId output_weight =
      b.matrix("attention.output.weight", W, W, {hf + "self_attn.o_proj.weight"});
  const ParamId mlp_norm =
      b.norm_weight("mlp.norm.weight", W, {hf + "post_attention_layernorm.weight"});
  const ParamId gate_up_weight =
      b.matrix("mlp.gate_up.weight", W,
               {{{hf + "mlp.gate_proj.weight"}, F}, {{hf + "mlp.up_proj.weight"}, F}});
  const ParamId down_weight = b.matrix("mlp.down.weight", W, F, {hf + "mlp.down_proj.weight"});

  const ValueId x = b.input();  // (T, W)
  const ValueId normed = b.rms_norm("attention.norm", x, attention_norm, config.norm_eps);
  const ValueId qkv = b.rotary("attention.qkv", b.linear("attention.qkv", normed, qkv_weight),
                               heads, config.rope_theta);
  const ValueId context = b.attention("attention.context", qkv, heads, /*causal=*/true,
                                      config.attention_dropout, attention_probs);
  const auto [sum, mlp_normed] = b.residual_rms_norm(
      "sum", "mlp.norm", b.linear("output", context, output_weight), x, mlp_norm, config.norm_eps);
  const ValueId gate_up = b.linear("mlp.gate_up", mlp_normed, gate_up_weight);  // (T, 2F)
  b.recompute(gate_up);
  b.end(b.linear("y", b.gate("mlp.activated", Activation::silu, gate_up), down_weight, kNone, sum));
}

void add_gpt2_layer(ModelBuilder& builder,
                    int64_t index,
                    const DecoderConfig& config,
                    const ModelTable& model) {
  const int64_t W = config.hidden_size, F = config.intermediate_size;
  const BlockBuilder::Heads heads = heads_of(config);
  const std::string hf = fmt::format("transformer.h.{}.", index);
  // Files have these the other way round (Conv1D).
  const auto conv = [&](const char* name) { return HfName{.name = hf + name, .transposed = true}; };
  BlockBuilder b = builder.block(fmt::format("layer.{}", index), BlockKind::layer);
  const ParamId attention_norm_weight =
      b.norm_weight("attention.norm.weight", W, {hf + "ln_1.weight"});
  const ParamId attention_norm_bias = b.bias("attention.norm.bias", W, {hf + "ln_1.bias"});
  const ParamId qkv_weight = b.matrix("attention.qkv.weight", 3 * W, W, conv("attn.c_attn.weight"));
  const ParamId qkv_bias = b.bias("attention.qkv.bias", 3 * W, {hf + "attn.c_attn.bias"});
  const ParamId output_weight =
      b.matrix("attention.output.weight", W, W, conv("attn.c_proj.weight"));
  const ParamId output_bias = b.bias("attention.output.bias", W, {hf + "attn.c_proj.bias"});
  const ParamId mlp_norm_weight = b.norm_weight("mlp.norm.weight", W, {hf + "ln_2.weight"});
  const ParamId mlp_norm_bias = b.bias("mlp.norm.bias", W, {hf + "ln_2.bias"});
  const ParamId up_weight = b.matrix("mlp.up.weight", F, W, conv("mlp.c_fc.weight"));
  const ParamId up_bias = b.bias("mlp.up.bias", F, {hf + "mlp.c_fc.bias"});
  const ParamId down_weight = b.matrix("mlp.down.weight", W, F, conv("mlp.c_proj.weight"));
  const ParamId down_bias = b.bias("mlp.down.bias", W, {hf + "mlp.c_proj.bias"});

  const ValueId x = b.input();  // (T, W)
  const ValueId normed =
      b.norm("attention.norm", x, attention_norm_weight, attention_norm_bias, config.norm_eps);
  const ValueId qkv = b.linear("attention.qkv", normed, qkv_weight, qkv_bias);  // (T, 3W)
  const ValueId context = b.attention("attention.context", qkv, heads, /*causal=*/true,
                                      model.attention_dropout, attention_probs);
  const auto [sum, mlp_normed] = b.residual_norm(
      "sum", "mlp.norm", b.linear("output", context, output_weight), output_bias, x,
      mlp_norm_weight, mlp_norm_bias, config.norm_eps, model.hidden_dropout, attention_output);
  const auto [up, activated] = b.activation("mlp.activated", Activation::gelu,
                                            b.linear("mlp.up", mlp_normed, up_weight), up_bias);
  b.recompute(up);  // (T, F)
  b.end(b.dropout_residual("y", b.linear("down", activated, down_weight), down_bias, sum,
                           model.hidden_dropout, layer_output));
}

/** The last norm, and the vocabulary on all tokens; those without a label give no loss. */
void add_head(ModelBuilder& builder, const DecoderConfig& config) {
  const bool is_llama = config.family == DecoderFamily::llama;
  const int64_t W = config.hidden_size;
  const std::string hf = is_llama ? "model.norm" : "transformer.ln_f";
  BlockBuilder b = builder.block("head", BlockKind::head);
  const ParamId norm_weight = b.norm_weight("norm.weight", W, {hf + ".weight"});
  const ParamId norm_bias = is_llama ? kNone : b.bias("norm.bias", W, {hf + ".bias"});
  const bool has_own = is_llama && !config.tie_word_embeddings;
  const ParamId word = has_own ? b.matrix("word.weight", config.vocab_size, W, {"lm_head.weight"})
                               : b.borrow(/*block=*/0, /*param=*/0);

  const ValueId x = b.input();
  const ValueId normed = is_llama ? b.rms_norm("norm", x, norm_weight, config.norm_eps)
                                  : b.norm("norm", x, norm_weight, norm_bias, config.norm_eps);
  b.vocabulary_loss(normed, word, kNone);
  b.end();
}

void check_shape(const DecoderConfig& config, const TableOptions& options) {
  const int64_t W = config.hidden_size, H = config.num_attention_heads,
                kv = config.num_key_value_heads;
  FERRY_CHECK(options.attention != AttentionBackend::flash || options.compute != DType::f32,
              "flash attention has no fp32 form");
  FERRY_CHECK(H > 0 && W % H == 0 && kv > 0 && H % kv == 0, "width {}, {} heads, {} of keys", W, H,
              kv);
  FERRY_CHECK(config.family == DecoderFamily::gpt2 ? kv == H : W / H % 2 == 0,
              "width {}, {} heads, {} of keys", W, H, kv);
  FERRY_CHECK(options.attention == AttentionBackend::cpu_math || (W / H % 8 == 0 && W / H <= 256),
              "heads of width {}; on a GPU they are multiples of 8 up to 256", W / H);
}

}  // namespace

ModelTable make_decoder_table(const DecoderConfig& config, const TableOptions& options) {
  check_shape(config, options);
  const bool is_llama = config.family == DecoderFamily::llama;

  ModelTable model;
  model.family = is_llama ? "llama" : "gpt2";
  model.hf_architecture = is_llama ? "LlamaForCausalLM" : "GPT2LMHeadModel";
  model.head = HeadKind::causal_lm;
  model.width = config.hidden_size;
  model.n_heads = config.num_attention_heads;
  model.n_kv_heads = config.num_key_value_heads;
  model.norm_eps = config.norm_eps;
  model.rope_theta = is_llama ? config.rope_theta : 0;
  model.compute = options.compute;
  model.attention = options.attention;
  model.hidden_dropout = is_llama ? 0 : config.hidden_dropout;
  model.attention_dropout = config.attention_dropout;
  model.init_std = config.initializer_range;
  model.max_positions = config.max_position_embeddings;
  model.vocab_size = config.vocab_size;

  ModelBuilder builder(model, is_llama ? "model." : "transformer.", options.gpu_multiprocessors);
  add_embeddings(builder, config, model);
  for (int64_t i = 0; i < config.num_hidden_layers; i++) {
    if (is_llama)
      add_llama_layer(builder, i, config);
    else
      add_gpt2_layer(builder, i, config, model);
  }
  add_head(builder, config);
  if (!is_llama || config.tie_word_embeddings) model.hf_ignored.push_back("lm_head.weight");
  return model;
}

DecoderConfig llama_3g() {
  return {.family = DecoderFamily::llama,
          .vocab_size = 32000,
          .hidden_size = 3072,
          .num_hidden_layers = 28,
          .num_attention_heads = 24,
          .num_key_value_heads = 8,
          .intermediate_size = 8192,
          .max_position_embeddings = 2048};
}

DecoderConfig gpt2_13g() {
  return {.family = DecoderFamily::gpt2,
          .vocab_size = 50257,
          .hidden_size = 5120,
          .num_hidden_layers = 40,
          .num_attention_heads = 128,
          .num_key_value_heads = 128,
          .intermediate_size = 20480,
          .max_position_embeddings = 512,
          .hidden_dropout = 0.1f,
          .attention_dropout = 0.1f};
}

}  // namespace ferry
