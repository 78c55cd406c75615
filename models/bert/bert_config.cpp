#include "models/bert/bert_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "src/base/error.h"

namespace ferry {
namespace {

using nlohmann::json;

// Far above any BERT, and small enough that no product of three of them leaves int64.
constexpr int64_t kDimensionMax = int64_t{1} << 20;

[[noreturn]] void refuse(std::string_view key,
                         const std::string& what,
                         std::string_view hint = {}) {
  throw Error(Fault::data, "model.config", fmt::format("'{}' {}", key, what), hint);
}

/** The value of a key, or nullptr when it is absent or null. */
const json* find(const json& config, const char* key) {
  const auto at = config.find(key);
  return at == config.end() || at->is_null() ? nullptr : &*at;
}

int64_t read_integer(const json& config,
                     const char* key,
                     int64_t least,
                     int64_t most,
                     std::optional<int64_t> fallback = {}) {
  const json* value = find(config, key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    refuse(key, "is missing", "is this the config.json of a BERT?");
  }
  if (!value->is_number_integer())
    refuse(key, fmt::format("is {}, expected an integer", value->dump()));
  const bool too_large =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(most);
  if (too_large || value->get<int64_t>() < least || value->get<int64_t>() > most) {
    refuse(key, fmt::format("is {}, expected {} to {}", value->dump(), least, most));
  }
  return value->get<int64_t>();
}

std::optional<float> read_number(const json& config, const char* key, double least, double below) {
  const json* value = find(config, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(key, fmt::format("is {}, expected a number", value->dump()));
  const double number = value->get<double>();
  if (!(number >= least && number < below)) {
    refuse(key, fmt::format("is {}, expected at least {} and below {}", number, least, below));
  }
  return static_cast<float>(number);
}

void expect_text(const json& config,
                 const char* key,
                 std::string_view expected,
                 std::string_view hint) {
  const json* value = find(config, key);
  if (value == nullptr) return;
  if (!value->is_string() || value->get<std::string>() != expected) {
    refuse(key, fmt::format("is {}, Ferry computes '{}' only", value->dump(), expected), hint);
  }
}

void expect_not_set(const json& config, const char* key, std::string_view hint) {
  const json* value = find(config, key);
  if (value != nullptr && !(value->is_boolean() && !value->get<bool>())) {
    refuse(key, fmt::format("is {}, expected false", value->dump()), hint);
  }
}

}  // namespace

BertConfig parse_bert_config(const json& config) {
  if (!config.is_object()) {
    throw Error(Fault::data, "model.config", "config.json holds no object",
                "is it a model directory?");
  }
  expect_text(config, "model_type", "bert", "fine-tune a BERT, or wait for this family");
  expect_text(config, "hidden_act", "gelu", "the activation of a BERT is the exact 'gelu'");
  expect_text(config, "position_embedding_type", "absolute", "relative positions are not computed");
  expect_not_set(config, "is_decoder", "a BERT that decodes is not supported");
  expect_not_set(config, "add_cross_attention", "a BERT that decodes is not supported");

  BertConfig c;
  c.vocab_size = read_integer(config, "vocab_size", 1, kDimensionMax * 16);
  c.hidden_size = read_integer(config, "hidden_size", 1, kDimensionMax);
  c.num_hidden_layers = read_integer(config, "num_hidden_layers", 1, 4096);
  c.num_attention_heads = read_integer(config, "num_attention_heads", 1, kDimensionMax);
  c.intermediate_size = read_integer(config, "intermediate_size", 1, kDimensionMax);
  c.max_position_embeddings = read_integer(config, "max_position_embeddings", 1, kDimensionMax);
  c.type_vocab_size = read_integer(config, "type_vocab_size", 1, kDimensionMax, c.type_vocab_size);
  c.pad_token_id = read_integer(config, "pad_token_id", 0, c.vocab_size - 1, 0);
  c.layer_norm_eps = read_number(config, "layer_norm_eps", 0, 1).value_or(c.layer_norm_eps);
  c.hidden_dropout_prob =
      read_number(config, "hidden_dropout_prob", 0, 0.999).value_or(c.hidden_dropout_prob);
  c.attention_probs_dropout_prob = read_number(config, "attention_probs_dropout_prob", 0, 0.999)
                                       .value_or(c.attention_probs_dropout_prob);
  c.classifier_dropout = read_number(config, "classifier_dropout", 0, 0.999);
  c.initializer_range =
      read_number(config, "initializer_range", 0, 1e3).value_or(c.initializer_range);
  if (c.hidden_size % c.num_attention_heads != 0) {
    refuse("num_attention_heads", fmt::format("is {}, which does not divide 'hidden_size' {}",
                                              c.num_attention_heads, c.hidden_size));
  }
  return c;
}

}  // namespace ferry
