#include "models/encoder/encoder_blocks.h"

#include <fmt/format.h>

#include "models/blocks/shared_work.h"
#include "models/blocks/token_heads.h"
#include "models/config_keys.h"
#include "src/base/error.h"

namespace ferry {

HfName norm_weight_name(const std::string& hf, bool optional) {
  return {.name = hf + ".weight", .optional = optional, .also_named = {hf + ".gamma"}};
}

HfName norm_bias_name(const std::string& hf, bool optional) {
  return {.name = hf + ".bias", .optional = optional, .also_named = {hf + ".beta"}};
}

EncoderLayer bert_like_layer(
    const std::string& stem, int64_t index, int64_t width, int64_t intermediate, int64_t n_heads) {
  const std::string hf = fmt::format("{}.encoder.layer.{}.", stem, index);
  const std::string self = hf + "attention.self.", out = hf + "attention.output.";
  return {.width = width,
          .intermediate = intermediate,
          .n_heads = n_heads,
          .query = self + "query",
          .key = self + "key",
          .value = self + "value",
          .attention_output = out + "dense",
          .attention_norm = out + "LayerNorm",
          .up = hf + "intermediate.dense",
          .down = hf + "output.dense",
          .norm = hf + "output.LayerNorm"};
}

void add_encoder_layer(ModelBuilder& builder,
                       int64_t index,
                       const EncoderLayer& layer,
                       const ModelTable& model) {
  const int64_t W = layer.width, F = layer.intermediate, H = layer.n_heads;
  const auto weight = [](const std::string& hf) { return HfName{.name = hf + ".weight"}; };
  const auto bias = [](const std::string& hf) { return HfName{.name = hf + ".bias"}; };
  BlockBuilder b = builder.block(fmt::format("layer.{}", index), BlockKind::layer);
  const ParamId qkv_weight =
      b.matrix("attention.qkv.weight", W,
               {{weight(layer.query), W}, {weight(layer.key), W}, {weight(layer.value), W}});
  const ParamId qkv_bias = b.bias(
      "attention.qkv.bias", {{bias(layer.query), W}, {bias(layer.key), W}, {bias(layer.value), W}});
  const ParamId dense_weight =
      b.matrix("attention.dense.weight", W, W, weight(layer.attention_output));
  const ParamId dense_bias = b.bias("attention.dense.bias", W, bias(layer.attention_output));
  const ParamId attention_norm_weight =
      b.norm_weight("attention.norm.weight", W, norm_weight_name(layer.attention_norm));
  const ParamId attention_norm_bias =
      b.bias("attention.norm.bias", W, norm_bias_name(layer.attention_norm));
  const ParamId up_weight = b.matrix("up.weight", F, W, weight(layer.up));
  const ParamId up_bias = b.bias("up.bias", F, bias(layer.up));
  const ParamId down_weight = b.matrix("down.weight", W, F, weight(layer.down));
  const ParamId down_bias = b.bias("down.bias", W, bias(layer.down));
  const ParamId norm_weight = b.norm_weight("norm.weight", W, norm_weight_name(layer.norm));
  const ParamId norm_bias = b.bias("norm.bias", W, norm_bias_name(layer.norm));

  const BlockBuilder::Heads heads = {.n_heads = H, .n_kv_heads = H, .head_width = W / H};
  const ValueId x = b.input();  // (T, W)
  const ValueId qkv =
      b.linear_to_ranks("attention.qkv", x, qkv_weight, qkv_bias, b.shared_qkv(heads));  // (T, 3W)
  const ValueId context = b.attention("attention.context", qkv, b.heads_of_rank(heads),
                                      layer.is_causal, model.attention_dropout, attention_probs);
  const ValueId dense = b.linear_from_ranks("attention.dense", context, dense_weight);
  const auto [attention_sum, attended] = b.residual_norm(
      "attention.sum", "attention.norm", dense, dense_bias, x, attention_norm_weight,
      attention_norm_bias, model.norm_eps, model.hidden_dropout, attention_output);
  const auto [up, activated] =
      b.activated_to_ranks("activated", "up", layer.activation, attended, up_weight, up_bias);
  b.recompute(up);  // (T, F)
  const ValueId down = b.linear_from_ranks("down", activated, down_weight);
  const auto [sum, y] =
      b.residual_norm("sum", "norm", down, down_bias, attended, norm_weight, norm_bias,
                      model.norm_eps, model.hidden_dropout, layer_output);
  b.end(y);
}

namespace {

void end_in_text_labels(BlockBuilder& b, const ModelTable& model, const TextClassifier& head) {
  const int64_t W = model.width, L = model.n_labels;
  const ParamId dense_weight =
      b.matrix("pooler.weight", W, W, {.name = head.dense + ".weight", .optional = true});
  const ParamId dense_bias =
      b.bias("pooler.bias", W, {.name = head.dense + ".bias", .optional = true});
  const ParamId weight =
      b.matrix("classifier.weight", L, W, {.name = head.logits + ".weight", .optional = true});
  const ParamId bias =
      b.bias("classifier.bias", L, {.name = head.logits + ".bias", .optional = true});

  ValueId first = b.first_rows("first", b.input());  // (n_seqs, W)
  if (head.drops_first)
    first = b.dropout("first_dropped", first, model.head_dropout, second_head_dropout);
  const auto activated = [&]() -> ValueId {
    if (!head.activation)
      return b.tanh("pooled", b.linear("pooler", first, dense_weight, dense_bias));
    return b
        .activation("pooled", *head.activation, b.linear("pooler", first, dense_weight), dense_bias)
        .second;
  };
  const ValueId dropped = b.dropout("dropped", activated(), model.head_dropout, head_dropout);
  b.label_loss(b.logits(dropped, weight, bias));  // (n_seqs, L) fp32
  b.end();
}

void end_in_words(BlockBuilder& b, const ModelTable& model, const MaskedLmHead& head) {
  const int64_t W = model.width, E = head.width;
  const ParamId dense_weight =
      b.matrix("dense.weight", E, W, {.name = head.dense + ".weight", .optional = true});
  const ParamId dense_bias =
      b.bias("dense.bias", E, {.name = head.dense + ".bias", .optional = true});
  const ParamId norm_weight =
      b.norm_weight("norm.weight", E, norm_weight_name(head.norm, /*optional=*/true));
  const ParamId norm_bias = b.bias("norm.bias", E, norm_bias_name(head.norm, /*optional=*/true));
  const ParamId word = b.borrow_words(head.decoder + ".weight");
  const ParamId decoder_bias =
      b.word_bias("decoder.bias", model.vocab_size,
                  {.name = head.bias, .optional = true, .also_named = {head.decoder + ".bias"}});

  const ValueId labelled = b.labelled_rows("labelled", b.input());  // (label tokens, W)
  const auto [dense, activated] =
      b.activation("gelu", head.activation, b.linear("dense", labelled, dense_weight),
                   dense_bias);  // (label tokens, E)
  b.vocabulary_loss(b.norm("norm", activated, norm_weight, norm_bias, model.norm_eps), word,
                    decoder_bias);
  b.end();
}

}  // namespace

void add_encoder_head(ModelBuilder& builder, const ModelTable& model, const EncoderHeads& heads) {
  using enum HeadKind;
  BlockBuilder b = builder.block("head", BlockKind::head);
  const auto dropped = [&] {
    return b.dropout("dropped", b.input(), model.head_dropout, head_dropout);
  };
  switch (model.head) {
    case classification:
      return end_in_text_labels(b, model, heads.classifier);
    case masked_lm:
      return end_in_words(b, model, heads.masked_lm);
    case token_classification:
      return end_in_token_labels(b, model, dropped(), "classifier");
    case question_answering:
      return end_in_answer_spans(b, model, heads.answers_drop ? dropped() : b.input());
    case causal_lm:
    case prompt:
      break;  // refused before
  }
}

void check_encoder(const JsonReader& config, const TableOptions& options) {
  expect_text(config, "position_embedding_type", "absolute", "relative positions are not computed");
  expect_off(config, "is_decoder", "an encoder that decodes is not supported");
  expect_off(config, "add_cross_attention", "an encoder that decodes is not supported");
  if (const auto tied = config.find("tie_word_embeddings");
      tied && options.head == HeadKind::masked_lm)
    expect_on(config, "tie_word_embeddings", "the head's matrix is that of the embeddings");
}

ModelTable start_encoder(const EncoderFacts& facts, const TableOptions& options) {
  FERRY_CHECK(options.attention != AttentionBackend::flash || options.compute != DType::f32,
              "flash attention has no fp32 form");
  using enum HeadKind;
  FERRY_CHECK(options.head != causal_lm, "an encoder sees what follows a token");
  ModelTable model;
  model.family = facts.family;
  model.hf_architecture = architecture_of(facts.stem, options.head);
  model.head = options.head;
  model.width = facts.width;
  model.head_width = facts.width / facts.n_heads;
  model.norm_eps = facts.norm_eps;
  model.compute = options.compute;
  model.attention = options.attention;
  model.hidden_dropout = options.hidden_dropout.value_or(facts.hidden_dropout);
  model.attention_dropout = options.attention_dropout.value_or(facts.attention_dropout);
  model.head_dropout =
      options.classifier_dropout.value_or(facts.head_dropout.value_or(model.hidden_dropout));
  model.init_std = facts.init_std;
  model.max_positions = facts.max_positions;
  model.vocab_size = facts.vocab_size;
  model.padding_row = facts.padding_row;
  model.n_token_types = facts.n_token_types;
  if (options.head == question_answering) model.n_labels = 2;  // start and end
  if (options.head == classification || options.head == token_classification) {
    FERRY_CHECK(options.n_labels >= 1, "{} labels", options.n_labels);
    model.n_labels = options.n_labels;
  }
  share_work(model, options.sharing);
  return model;
}

}  // namespace ferry
