#include "models/decoder/decoder_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/blocks/shared_work.h"
#include "models/blocks/token_heads.h"
#include "src/base/error.h"

namespace ferry {

void add_decoder_embeddings(ModelBuilder& builder,
                            const ModelTable& model,
                            const DecoderEmbeddings& its) {
  const int64_t W = model.width;
  BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
  const int64_t E = its.projection.empty() ? W : its.word_width;
  const ParamId word =
      b.words("word.weight", model.vocab_size, E, {its.word}, {.zero_row = model.padding_row});
  const ParamId position =
      its.position.empty()
          ? kNone
          : b.matrix("position.weight", model.max_positions + its.rule.position_offset, W,
                     {its.position});

  const auto summed = [&] {
    if (its.projection.empty()) return b.embedding("sum", word, position, kNone, its.rule);
    const ParamId projection =
        b.matrix("projection.weight", W, its.word_width, {its.projection + ".weight"});
    const ValueId words = b.embedding("words", word, kNone, kNone, its.rule);              // (T, E)
    const ValueId positions = b.embedding("positions", kNone, position, kNone, its.rule);  // (T, W)
    return b.linear("sum", words, projection, kNone, positions);
  };
  const ValueId sum = summed();
  const float p = its.drops ? model.hidden_dropout : 0;
  b.end(b.dropout("dropped", sum, p, decoder_embedding_dropout));
}

void add_gpt_layer(ModelBuilder& builder,
                   int64_t index,
                   const GptLayer& layer,
                   const DecoderConfig& config,
                   const ModelTable& model) {
  const int64_t W = config.hidden_size, F = config.intermediate_size;
  const BlockBuilder::Heads heads = {.n_heads = config.num_attention_heads,
                                     .n_kv_heads = config.num_attention_heads,
                                     .head_width = model.head_width};
  const auto weight = [&](const std::string& hf) {
    return HfName{.name = hf + ".weight", .transposed = layer.has_transposed};
  };
  const auto bias = [](const std::string& hf) { return HfName{.name = hf + ".bias"}; };
  const int64_t part = 3 * W / static_cast<int64_t>(layer.qkv.size());
  BlockBuilder::HfRows qkv_weights, qkv_biases;
  for (const std::string& hf : layer.qkv) {
    qkv_weights.emplace_back(weight(hf), part);
    qkv_biases.emplace_back(bias(hf), part);
  }
  BlockBuilder b = builder.block(fmt::format("layer.{}", index), BlockKind::layer);
  const ParamId attention_norm_weight =
      b.norm_weight("attention.norm.weight", W, {layer.attention_norm + ".weight"});
  const ParamId attention_norm_bias = b.bias("attention.norm.bias", W, bias(layer.attention_norm));
  const ParamId qkv_weight = b.matrix("attention.qkv.weight", W, qkv_weights);
  const ParamId qkv_bias = b.bias("attention.qkv.bias", qkv_biases);
  const ParamId output_weight = b.matrix("attention.output.weight", W, W, weight(layer.output),
                                         {.factor = layer.residual_factor});
  const ParamId output_bias = b.bias("attention.output.bias", W, bias(layer.output));
  const ParamId mlp_norm_weight = b.norm_weight("mlp.norm.weight", W, {layer.mlp_norm + ".weight"});
  const ParamId mlp_norm_bias = b.bias("mlp.norm.bias", W, bias(layer.mlp_norm));
  const ParamId up_weight = b.matrix("mlp.up.weight", F, W, weight(layer.up));
  const ParamId up_bias = b.bias("mlp.up.bias", F, bias(layer.up));
  const ParamId down_weight =
      b.matrix("mlp.down.weight", W, F, weight(layer.down), {.factor = layer.residual_factor});
  const ParamId down_bias = b.bias("mlp.down.bias", W, bias(layer.down));

  const ValueId x = b.input();  // (T, W)
  const ValueId normed =
      b.norm("attention.norm", x, attention_norm_weight, attention_norm_bias, config.norm_eps);
  const ValueId qkv = b.linear_to_ranks("attention.qkv", normed, qkv_weight, qkv_bias,
                                        b.shared_qkv(heads));  // (T, 3W)
  const ValueId context =
      b.attention("attention.context", qkv, b.heads_of_rank(heads),
                  /*causal=*/true, model.attention_dropout, decoder_attention_probs);
  const auto [sum, mlp_normed] =
      b.residual_norm("sum", "mlp.norm", b.linear_from_ranks("output", context, output_weight),
                      output_bias, x, mlp_norm_weight, mlp_norm_bias, config.norm_eps,
                      model.hidden_dropout, decoder_attention_output);
  const auto [up, activated] = b.activated_to_ranks("mlp.activated", "mlp.up", config.activation,
                                                    mlp_normed, up_weight, up_bias);
  b.recompute(up);  // (T, F)
  b.end(b.dropout_residual("y", b.linear_from_ranks("down", activated, down_weight), down_bias, sum,
                           model.hidden_dropout, decoder_layer_output));
}

void leave_other_logits(ModelTable& model, std::initializer_list<const char*> names) {
  if (model.head != HeadKind::causal_lm)
    model.hf_ignored.insert(model.hf_ignored.end(), names.begin(), names.end());
}

void add_decoder_head(ModelBuilder& builder, const ModelTable& model, const DecoderHead& head) {
  const int64_t W = model.width;
  BlockBuilder b = builder.block("head", BlockKind::head);
  const auto normed = [&](ValueId x) {
    if (head.norm.empty()) return x;
    const Init ones = head.norm_offset == 0 ? Init::ones : Init::zeros;
    const ParamId weight = b.norm_weight("norm.weight", W, {head.norm + ".weight"}, ones);
    if (head.is_rms) return b.rms_norm("norm", x, weight, model.norm_eps, head.norm_offset);
    return b.norm("norm", x, weight, b.bias("norm.bias", W, {head.norm + ".bias"}), model.norm_eps);
  };
  const auto output_of = [&](ValueId x) {
    const ValueId y = normed(x);
    if (head.projection.empty()) return y;
    return b.linear(
        "projected", y,
        b.matrix("projection.weight", head.word_width, W, {head.projection + ".weight"}));
  };
  using enum HeadKind;
  switch (model.head) {
    case classification: {
      const ValueId last = output_of(b.last_rows("last", b.input()));  // (n_seqs, W)
      const ParamId score = b.matrix("score.weight", model.n_labels, b.columns_of(last),
                                     {.name = "score.weight", .optional = true});
      b.label_loss(b.logits(last, score, kNone));  // (n_seqs, L) fp32
      return b.end();
    }
    case token_classification:
      return end_in_token_labels(
          b, model,
          b.dropout("dropped", output_of(b.input()), model.head_dropout, decoder_head_dropout),
          head.tags, head.has_tag_bias);
    case question_answering:
      return end_in_answer_spans(b, model, output_of(b.input()));
    default:
      break;
  }
  const ValueId output = output_of(b.input());
  const std::string vocabulary = head.vocabulary + ".weight";
  const ParamId word =
      head.is_tied ? b.borrow_words(vocabulary)
                   : b.words("word.weight", model.vocab_size, b.columns_of(output), {vocabulary});
  const ParamId word_bias =
      head.has_bias ? b.word_bias("word.bias", model.vocab_size, {head.vocabulary + ".bias"})
                    : kNone;
  b.vocabulary_loss(output, word, word_bias, head.logits);
  b.end();
}

ModelTable start_decoder(const DecoderConfig& config, const TableOptions& options) {
  const int64_t W = config.hidden_size, H = config.num_attention_heads,
                kv = config.num_key_value_heads;
  const int64_t D = config.head_dim > 0 ? config.head_dim : W / std::max<int64_t>(H, 1);
  FERRY_CHECK(options.attention != AttentionBackend::flash || options.compute != DType::f32,
              "flash attention has no fp32 form");
  using enum HeadKind;
  FERRY_CHECK(options.head != masked_lm, "no head {} of a decoder", name_of(options.head));
  FERRY_CHECK(H > 0 && (config.head_dim > 0 || W % H == 0) && kv > 0 && H % kv == 0,
              "width {}, {} heads, {} of keys", W, H, kv);
  FERRY_CHECK(config.family != DecoderFamily::gpt2 || kv == H, "width {}, {} heads, {} of keys", W,
              H, kv);
  FERRY_CHECK(options.attention == AttentionBackend::cpu_math || (D % 8 == 0 && D <= 256),
              "heads of width {}; on a GPU they are multiples of 8 up to 256", D);
  ModelTable model;
  model.family = config.name;
  const bool is_lm = options.head == causal_lm;
  const bool classifies_texts = options.head == classification;
  const std::string& stem =
      classifies_texts && !config.classifier_stem.empty() ? config.classifier_stem : config.stem;
  model.hf_architecture =
      is_lm && stem == "GPT2" ? "GPT2LMHeadModel" : architecture_of(stem, options.head);
  model.head = options.head;
  model.n_labels = is_lm ? 0 : options.n_labels;
  if (options.head == question_answering) model.n_labels = 2;  // start and end
  if (options.head == token_classification)
    model.head_dropout = options.classifier_dropout.value_or(config.head_dropout);
  model.width = W;
  model.head_width = D;
  model.norm_eps = config.norm_eps;
  model.compute = options.compute;
  model.attention = options.attention;
  model.hidden_dropout = options.hidden_dropout.value_or(config.hidden_dropout);
  model.attention_dropout = options.attention_dropout.value_or(config.attention_dropout);
  model.init_std = config.initializer_range;
  model.max_positions = config.max_position_embeddings;
  model.vocab_size = config.vocab_size;
  model.padding_row = config.padding_row;
  for (const auto& rope : {config.rope, config.window_rope}) {
    if (!rope || rope->scaling != RopeScaling::longrope) continue;
    FERRY_CHECK(model.long_from == 0 || model.long_from == rope->original_positions,
                "sequences are long from {} and {} tokens on", model.long_from,
                rope->original_positions);
    model.long_from = rope->original_positions;
  }
  share_work(model, options.sharing);
  return model;
}

ModelTable make_decoder_table(const DecoderConfig& config, const TableOptions& options) {
  DecoderConfig named = config;
  if (config.family == DecoderFamily::gpt2) named.name = "gpt2", named.stem = "GPT2";
  TableOptions of_lm = options;
  of_lm.head = HeadKind::causal_lm;
  return make_in_pieces(options.piece_elements_max, [&](const VocabularyCut& cut) {
    of_lm.cut = cut;
    return make_decoder(named, of_lm);
  });
}

namespace {

/** Its branches are as many as add up in the last layer's output: their matrices start smaller by
 * that (Radford et al. 2019). */
GptLayer gpt2_layer(int64_t index, int64_t n_layers) {
  const std::string hf = fmt::format("transformer.h.{}.", index);
  return {.attention_norm = hf + "ln_1",
          .mlp_norm = hf + "ln_2",
          .output = hf + "attn.c_proj",
          .up = hf + "mlp.c_fc",
          .down = hf + "mlp.c_proj",
          .qkv = {hf + "attn.c_attn"},
          .has_transposed = true,
          .residual_factor = 1 / std::sqrt(2.0 * static_cast<double>(n_layers))};
}

}  // namespace

ModelTable make_decoder(const DecoderConfig& config, const TableOptions& options) {
  const bool is_llama = config.family == DecoderFamily::llama;
  ModelTable model = start_decoder(config, options);
  if (is_llama && !config.has_layer_norms) model.hidden_dropout = 0;

  ModelBuilder builder(model, is_llama ? "model." : "transformer.", options.gpu_multiprocessors,
                       options.cut, config.model_prefix);
  add_decoder_embeddings(builder, model,
                         {.word = is_llama ? "model.embed_tokens.weight" : "transformer.wte.weight",
                          .position = is_llama ? "" : "transformer.wpe.weight",
                          .rule = config.embedding});
  for (int64_t i = 0; i < config.num_hidden_layers; i++) {
    if (is_llama)
      add_llama_layer(builder, i, config, model);
    else
      add_gpt_layer(builder, i, gpt2_layer(i, config.num_hidden_layers), config, model);
  }
  const bool is_tied = !is_llama || config.tie_word_embeddings;
  add_decoder_head(builder, model,
                   {.norm = is_llama ? "model.norm" : "transformer.ln_f",
                    .is_rms = is_llama && !config.has_layer_norms,
                    .norm_offset = config.norm_offset,
                    .is_tied = is_tied,
                    .logits = config.logits,
                    .tags = is_llama ? "score" : "classifier",
                    .has_tag_bias = config.has_tag_bias});
  leave_other_logits(model, {"lm_head.weight"});
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
