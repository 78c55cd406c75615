#include "models/bert/bert_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/config_keys.h"

namespace ferry {

BertConfig parse_bert_config(const nlohmann::ordered_json& config, std::string_view origin) {
  return parse_bert_config(JsonReader::of(
      config, {std::string(origin), "model.config", "is it the config.json of a BERT?"}));
}

BertConfig parse_bert_config(const JsonReader& config) {
  expect_text(config, "model_type", "bert", "fine-tune a BERT, or wait for this family");
  expect_text(config, "hidden_act", "gelu", "the activation of a BERT is the exact 'gelu'");

  BertConfig c;
  c.vocab_size = config.integer("vocab_size", 1, kVocabMax);
  c.hidden_size = config.integer("hidden_size", 1, kWidthMax);
  c.num_hidden_layers = config.integer("num_hidden_layers", 1, kLayersMax);
  c.num_attention_heads = config.integer("num_attention_heads", 1, kHeadsMax);
  c.intermediate_size = config.integer("intermediate_size", 1, kIntermediateMax);
  c.max_position_embeddings = config.integer("max_position_embeddings", 1, kPositionsMax);
  c.type_vocab_size = config.integer("type_vocab_size", 1, kTokenTypesMax, c.type_vocab_size);
  c.padding_row = read_padding_row(config, c.vocab_size, c.padding_row);
  c.layer_norm_eps = read_eps(config, "layer_norm_eps", c.layer_norm_eps);
  c.hidden_dropout_prob = read_dropout(config, "hidden_dropout_prob", c.hidden_dropout_prob);
  c.attention_probs_dropout_prob =
      read_dropout(config, "attention_probs_dropout_prob", c.attention_probs_dropout_prob);
  if (config.find("classifier_dropout"))
    c.classifier_dropout = read_dropout(config, "classifier_dropout", 0);
  c.initializer_range = read_init_std(config);
  expect_divides(config, "num_attention_heads", c.num_attention_heads, "hidden_size",
                 c.hidden_size);
  return c;
}

}  // namespace ferry
