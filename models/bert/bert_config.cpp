#include "models/bert/bert_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "src/base/error.h"

namespace ferry {
namespace {

using nlohmann::json;

// Far above any BERT, and so small that the plan's arithmetic cannot leave int64: a block's weights
// are at most vocabulary x width = 2^40 elements, and its largest saved tensor, the attention's
// probabilities, tokens x positions x heads x 4 bytes = 2^31 x 2^18 x 2^10 x 4 = 2^61 bytes
// (src/plan/search/search.cpp has the limit of tokens, and of the sum of all blocks).
constexpr int64_t kVocabMax = int64_t{1} << 24, kWidthMax = int64_t{1} << 16,
                  kIntermediateMax = int64_t{1} << 18, kPositionsMax = int64_t{1} << 18,
                  kTokenTypesMax = int64_t{1} << 16, kHeadsMax = 1024;
// A table, a list and a layout are made of every layer: more would take minutes and gigabytes.
constexpr int64_t kLayersMax = 1024;

/** Reads values by key; every refusal names file and key. */
class Fields {
 public:
  Fields(const json& config, std::string_view origin) : config_(config), origin_(origin) {}

  [[noreturn]] void refuse(std::string_view key,
                           const std::string& what,
                           std::string_view hint = {}) const {
    throw Error(Fault::data, "model.config", fmt::format("'{}': {} {}", origin_, key, what), hint);
  }

  int64_t integer(const char* key,
                  int64_t least,
                  int64_t most,
                  std::optional<int64_t> fallback = {}) const {
    const json* value = find(key);
    if (value == nullptr) {
      if (fallback) return *fallback;
      refuse(key, "is missing", "is this the config.json of a BERT?");
    }
    if (!value->is_number_integer())
      refuse(key, fmt::format("is {}, expected an integer", shown(*value)));
    const bool too_large =
        value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(most);
    if (too_large || value->get<int64_t>() < least || value->get<int64_t>() > most) {
      refuse(key, fmt::format("is {}, expected {} to {}", shown(*value), least, most));
    }
    return value->get<int64_t>();
  }

  std::optional<float> number(const char* key, double least, double below) const {
    const json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) refuse(key, fmt::format("is {}, expected a number", shown(*value)));
    const double number = value->get<double>();
    if (!(number >= least && number < below)) {
      refuse(key, fmt::format("is {}, expected at least {} and below {}", number, least, below));
    }
    return static_cast<float>(number);
  }

  void expect_text(const char* key, std::string_view expected, std::string_view hint) const {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_string() || value->get<std::string>() != expected) {
      refuse(key, fmt::format("is {}, Ferry computes '{}' only", shown(*value), expected), hint);
    }
  }

  void expect_not_set(const char* key, std::string_view hint) const {
    const json* value = find(key);
    if (value != nullptr && !(value->is_boolean() && !value->get<bool>())) {
      refuse(key, fmt::format("is {}, expected false", shown(*value)), hint);
    }
  }

 private:
  /** The value of a key, or nullptr when it is absent or null. */
  const json* find(const char* key) const {
    const auto at = config_.find(key);
    return at == config_.end() || at->is_null() ? nullptr : &*at;
  }

  /** A value as a message shows it: short, whatever the file holds. */
  static std::string shown(const json& value) {
    constexpr size_t kShown = 60;
    std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
    return text.size() > kShown ? text.substr(0, kShown - 3) + "..." : text;
  }

  const json& config_;
  std::string_view origin_;
};

}  // namespace

BertConfig parse_bert_config(const json& config, std::string_view origin) {
  if (!config.is_object()) {
    throw Error(Fault::data, "model.config", fmt::format("'{}' holds no object", origin),
                "is it a model directory?");
  }
  const Fields fields(config, origin);
  fields.expect_text("model_type", "bert", "fine-tune a BERT, or wait for this family");
  fields.expect_text("hidden_act", "gelu", "the activation of a BERT is the exact 'gelu'");
  fields.expect_text("position_embedding_type", "absolute", "relative positions are not computed");
  fields.expect_not_set("is_decoder", "a BERT that decodes is not supported");
  fields.expect_not_set("add_cross_attention", "a BERT that decodes is not supported");

  BertConfig c;
  c.vocab_size = fields.integer("vocab_size", 1, kVocabMax);
  c.hidden_size = fields.integer("hidden_size", 1, kWidthMax);
  c.num_hidden_layers = fields.integer("num_hidden_layers", 1, kLayersMax);
  c.num_attention_heads = fields.integer("num_attention_heads", 1, kHeadsMax);
  c.intermediate_size = fields.integer("intermediate_size", 1, kIntermediateMax);
  c.max_position_embeddings = fields.integer("max_position_embeddings", 1, kPositionsMax);
  c.type_vocab_size = fields.integer("type_vocab_size", 1, kTokenTypesMax, c.type_vocab_size);
  c.pad_token_id = fields.integer("pad_token_id", 0, c.vocab_size - 1, 0);
  c.layer_norm_eps = fields.number("layer_norm_eps", 0, 1).value_or(c.layer_norm_eps);
  c.hidden_dropout_prob =
      fields.number("hidden_dropout_prob", 0, 0.999).value_or(c.hidden_dropout_prob);
  c.attention_probs_dropout_prob = fields.number("attention_probs_dropout_prob", 0, 0.999)
                                       .value_or(c.attention_probs_dropout_prob);
  c.classifier_dropout = fields.number("classifier_dropout", 0, 0.999);
  c.initializer_range = fields.number("initializer_range", 0, 1e3).value_or(c.initializer_range);
  if (c.hidden_size % c.num_attention_heads != 0) {
    fields.refuse("num_attention_heads", fmt::format("is {}, which does not divide hidden_size {}",
                                                     c.num_attention_heads, c.hidden_size));
  }
  return c;
}

}  // namespace ferry
