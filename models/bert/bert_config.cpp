#include "models/bert/bert_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace ferry {
namespace {

// Far above any BERT, and so small that the plan's arithmetic cannot leave int64: a block's weights
// are at most vocabulary x width = 2^40 elements, and its largest saved tensor, the attention's
// probabilities, tokens x positions x heads x 4 bytes = 2^31 x 2^18 x 2^10 x 4 = 2^61 bytes
// (src/plan/search/search.cpp has the limit of tokens, and of the sum of all blocks).
constexpr int64_t kVocabMax = int64_t{1} << 24, kWidthMax = int64_t{1} << 16,
                  kIntermediateMax = int64_t{1} << 18, kPositionsMax = int64_t{1} << 18,
                  kTokenTypesMax = int64_t{1} << 16, kHeadsMax = 1024;
// A table, a list and a layout are made of every layer: more would take minutes and gigabytes.
constexpr int64_t kLayersMax = 1024;
constexpr double kDropoutMax = 0.999;

/** A key that is absent has Hugging Face's default, which is this one. */
void expect_text(const JsonReader& config,
                 const char* key,
                 std::string_view expected,
                 std::string_view hint) {
  const auto value = config.find(key);
  if (value && !(value->is_text() && value->text() == expected))
    value->refuse(fmt::format("'{}', which alone Ferry computes", expected), hint);
}

void expect_not_set(const JsonReader& config, const char* key, std::string_view hint) {
  const auto value = config.find(key);
  if (value && value->value() != false) value->refuse("false", hint);
}

}  // namespace

BertConfig parse_bert_config(const nlohmann::ordered_json& config, std::string_view origin) {
  return parse_bert_config(JsonReader::of(
      config, {std::string(origin), "model.config", "is it the config.json of a BERT?"}));
}

BertConfig parse_bert_config(const JsonReader& config) {
  expect_text(config, "model_type", "bert", "fine-tune a BERT, or wait for this family");
  expect_text(config, "hidden_act", "gelu", "the activation of a BERT is the exact 'gelu'");
  expect_text(config, "position_embedding_type", "absolute", "relative positions are not computed");
  expect_not_set(config, "is_decoder", "a BERT that decodes is not supported");
  expect_not_set(config, "add_cross_attention", "a BERT that decodes is not supported");

  const auto fraction = [&](const char* key, float otherwise) {
    return static_cast<float>(config.number(key, 0, kDropoutMax, otherwise));
  };
  BertConfig c;
  c.vocab_size = config.integer("vocab_size", 1, kVocabMax);
  c.hidden_size = config.integer("hidden_size", 1, kWidthMax);
  c.num_hidden_layers = config.integer("num_hidden_layers", 1, kLayersMax);
  c.num_attention_heads = config.integer("num_attention_heads", 1, kHeadsMax);
  c.intermediate_size = config.integer("intermediate_size", 1, kIntermediateMax);
  c.max_position_embeddings = config.integer("max_position_embeddings", 1, kPositionsMax);
  c.type_vocab_size = config.integer("type_vocab_size", 1, kTokenTypesMax, c.type_vocab_size);
  c.pad_token_id = config.integer("pad_token_id", 0, c.vocab_size - 1, 0);
  c.layer_norm_eps = fraction("layer_norm_eps", c.layer_norm_eps);
  c.hidden_dropout_prob = fraction("hidden_dropout_prob", c.hidden_dropout_prob);
  c.attention_probs_dropout_prob =
      fraction("attention_probs_dropout_prob", c.attention_probs_dropout_prob);
  if (config.find("classifier_dropout")) c.classifier_dropout = fraction("classifier_dropout", 0);
  c.initializer_range =
      static_cast<float>(config.number("initializer_range", 0, 1e3, c.initializer_range));
  if (c.hidden_size % c.num_attention_heads != 0) {
    config.at("num_attention_heads")
        .fail(fmt::format("is {}, which does not divide hidden_size {}", c.num_attention_heads,
                          c.hidden_size));
  }
  return c;
}

}  // namespace ferry
