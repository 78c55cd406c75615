#pragma once
// The part of a BERT's config.json that Ferry reads. Torch-free; bert_table.h turns it into a
// tensor table.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "src/base/json/json_reader.h"

namespace ferry {

/** Hugging Face's BertConfig, with its defaults where the file may leave a key out. */
struct BertConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t intermediate_size = 0;
  int64_t max_position_embeddings = 0;
  int64_t type_vocab_size = 2;
  float layer_norm_eps = 1e-12f;
  float hidden_dropout_prob = 0.1f;
  float attention_probs_dropout_prob = 0.1f;
  std::optional<float> classifier_dropout;  ///< absent: hidden_dropout_prob
  int64_t padding_row = 0;                  ///< pad_token_id; -1: none
  float initializer_range = 0.02f;
};

/** Throws Error(data) that names file and key for a missing one, a wrong type, a value
 * out of range, or a kind of BERT that Ferry does not compute (another activation, relative
 * positions, a decoder). */
BertConfig parse_bert_config(const JsonReader& config);
/** The same of a value made by the program; `origin` names it in messages. */
BertConfig parse_bert_config(const nlohmann::ordered_json& config,
                             std::string_view origin = "config.json");

}  // namespace ferry
