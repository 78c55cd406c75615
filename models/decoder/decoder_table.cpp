#include "models/decoder/decoder_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"

namespace ferry {
namespace {

void add_embeddings(ModelBuilder& builder, const DecoderConfig& config, const ModelTable& model) {
  const bool is_llama = config.family == DecoderFamily::llama;
  BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
  const ParamId word =
      b.matrix("word.weight", config.vocab_size, config.hidden_size,
               {is_llama ? "model.embed_tokens.weight" : "transformer.wte.weight"});
  const ParamId position = is_llama ? kNone
                                    : b.matrix("position.weight", config.max_position_embeddings,
                                               config.hidden_size, {"transformer.wpe.weight"});

  const ValueId sum =
      b.embedding("sum", word, position, kNone, {.word_scale = config.embedding_scale});
  b.end(b.dropout("dropped", sum, model.hidden_dropout, decoder_embedding_dropout));
}

void add_gpt2_layer(ModelBuilder& builder,
                    int64_t index,
                    const DecoderConfig& config,
                    const ModelTable& model) {
  const int64_t W = config.hidden_size, F = config.intermediate_size;
  const BlockBuilder::Heads heads = {.n_heads = config.num_attention_heads,
                                     .n_kv_heads = config.num_attention_heads,
                                     .head_width = model.head_width};
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
                                      model.attention_dropout, decoder_attention_probs);
  const auto [sum, mlp_normed] =
      b.residual_norm("sum", "mlp.norm", b.linear("output", context, output_weight), output_bias, x,
                      mlp_norm_weight, mlp_norm_bias, config.norm_eps, model.hidden_dropout,
                      decoder_attention_output);
  const auto [up, activated] = b.activation("mlp.activated", config.activation,
                                            b.linear("mlp.up", mlp_normed, up_weight), up_bias);
  b.recompute(up);  // (T, F)
  b.end(b.dropout_residual("y", b.linear("down", activated, down_weight), down_bias, sum,
                           model.hidden_dropout, decoder_layer_output));
}

}  // namespace

void add_decoder_head(ModelBuilder& builder, const ModelTable& model, const DecoderHead& head) {
  const int64_t W = model.width, L = model.n_labels;
  const bool is_lm = model.head == HeadKind::causal_lm;
  BlockBuilder b = builder.block("head", BlockKind::head);
  const Init ones = head.norm_offset == 0 ? Init::ones : Init::zeros;
  const ParamId norm_weight = b.norm_weight("norm.weight", W, {head.norm + ".weight"}, ones);
  const ParamId norm_bias = head.is_rms ? kNone : b.bias("norm.bias", W, {head.norm + ".bias"});
  const auto normed = [&](ValueId x) {
    return head.is_rms ? b.rms_norm("norm", x, norm_weight, model.norm_eps, head.norm_offset)
                       : b.norm("norm", x, norm_weight, norm_bias, model.norm_eps);
  };
  if (!is_lm) {
    const ParamId score =
        b.matrix("score.weight", L, W, {.name = "score.weight", .optional = true});
    const ValueId last = normed(b.last_rows("last", b.input()));  // (n_seqs, W)
    b.label_loss(b.logits(last, score, kNone));                   // (n_seqs, L) fp32
    return b.end();
  }
  const ParamId word = head.vocabulary.empty() ? b.borrow(/*block=*/0, /*param=*/0)
                                               : b.matrix("word.weight", model.vocab_size, W,
                                                          {head.vocabulary + ".weight"});
  const ParamId word_bias =
      head.has_bias ? b.bias("word.bias", model.vocab_size, {head.vocabulary + ".bias"}) : kNone;
  b.vocabulary_loss(normed(b.input()), word, word_bias, head.logit_cap);
  b.end();
}

ModelTable start_decoder(const DecoderConfig& config, const TableOptions& options) {
  const int64_t W = config.hidden_size, H = config.num_attention_heads,
                kv = config.num_key_value_heads;
  const int64_t D = config.head_dim > 0 ? config.head_dim : W / std::max<int64_t>(H, 1);
  FERRY_CHECK(options.attention != AttentionBackend::flash || options.compute != DType::f32,
              "flash attention has no fp32 form");
  FERRY_CHECK(options.head == HeadKind::causal_lm || options.head == HeadKind::classification,
              "no head {} of a decoder", name_of(options.head));
  FERRY_CHECK(H > 0 && (config.head_dim > 0 || W % H == 0) && kv > 0 && H % kv == 0,
              "width {}, {} heads, {} of keys", W, H, kv);
  FERRY_CHECK(config.family != DecoderFamily::gpt2 || kv == H, "width {}, {} heads, {} of keys", W,
              H, kv);
  FERRY_CHECK(options.attention == AttentionBackend::cpu_math || (D % 8 == 0 && D <= 256),
              "heads of width {}; on a GPU they are multiples of 8 up to 256", D);
  ModelTable model;
  model.family = config.name;
  const bool is_lm = options.head == HeadKind::causal_lm;
  model.hf_architecture = is_lm && config.stem == "GPT2"
                              ? "GPT2LMHeadModel"
                              : architecture_of(config.stem, options.head);
  model.head = options.head;
  model.n_labels = is_lm ? 0 : options.n_labels;
  model.width = W;
  model.n_heads = H;
  model.n_kv_heads = kv;
  model.head_width = D;
  model.norm_eps = config.norm_eps;
  model.compute = options.compute;
  model.attention = options.attention;
  model.hidden_dropout = options.hidden_dropout.value_or(config.hidden_dropout);
  model.attention_dropout = options.attention_dropout.value_or(config.attention_dropout);
  model.init_std = config.initializer_range;
  model.max_positions = config.max_position_embeddings;
  model.vocab_size = config.vocab_size;
  return model;
}

ModelTable make_decoder_table(const DecoderConfig& config, const TableOptions& options) {
  DecoderConfig named = config;
  if (config.family == DecoderFamily::gpt2) named.name = "gpt2", named.stem = "GPT2";
  TableOptions of_lm = options;
  of_lm.head = HeadKind::causal_lm;
  return make_decoder(named, of_lm);
}

ModelTable make_decoder(const DecoderConfig& config, const TableOptions& options) {
  const bool is_llama = config.family == DecoderFamily::llama;
  ModelTable model = start_decoder(config, options);
  if (is_llama) model.hidden_dropout = 0;

  ModelBuilder builder(model, is_llama ? "model." : "transformer.", options.gpu_multiprocessors);
  add_embeddings(builder, config, model);
  for (int64_t i = 0; i < config.num_hidden_layers; i++) {
    if (is_llama)
      add_llama_layer(builder, i, config, model, options.max_length);
    else
      add_gpt2_layer(builder, i, config, model);
  }
  const bool is_tied = !is_llama || config.tie_word_embeddings;
  add_decoder_head(builder, model,
                   {.norm = is_llama ? "model.norm" : "transformer.ln_f",
                    .is_rms = is_llama,
                    .norm_offset = config.norm_offset,
                    .vocabulary = is_tied ? "" : "lm_head",
                    .logit_cap = config.logit_cap});
  if (is_tied || options.head != HeadKind::causal_lm) model.hf_ignored.push_back("lm_head.weight");
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
