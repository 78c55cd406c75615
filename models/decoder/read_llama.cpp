#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "models/config_keys.h"
#include "models/decoder/decoder_table.h"

namespace ferry {
namespace {

RopeScaling scaling_of(const JsonReader& rope, const RopeReading& reading) {
  const auto key = rope.find("rope_type") ? "rope_type" : "type";  // older files say type
  const auto type = rope.find(key);
  if (!type) return RopeScaling::none;
  using Name = std::pair<std::string_view, RopeScaling>;
  constexpr Name kNames[] = {{"default", RopeScaling::none},      {"linear", RopeScaling::linear},
                             {"dynamic", RopeScaling::dynamic},   {"yarn", RopeScaling::yarn},
                             {"longrope", RopeScaling::longrope}, {"llama3", RopeScaling::llama3}};
  constexpr Name kLongropeNames[] = {{"default", RopeScaling::none},
                                     {"longrope", RopeScaling::longrope},
                                     {"su", RopeScaling::longrope},
                                     {"yarn", RopeScaling::longrope}};
  const std::span<const Name> names =
      reading.is_longrope_alone ? std::span<const Name>(kLongropeNames) : kNames;
  for (const auto& [name, scaling] : names)
    if (type->is_text() && type->text() == name) return scaling;
  type->refuse(reading.is_longrope_alone ? "default or longrope"
                                         : "default, linear, dynamic, yarn, longrope or llama3");
}

std::vector<double> read_factors(const JsonReader& rope, std::string_view key) {
  std::vector<double> factors;
  if (const auto list = rope.find(key))
    for (size_t i = 0; i < list->size(); ++i)
      factors.push_back(list->at(i).number(1e-6, 1e6));
  return factors;
}

constexpr double kFactorMax = 1e6, kThetaMax = 1e12;

}  // namespace

std::optional<JsonReader> find_rope(const JsonReader& config) {
  const auto scaling = config.find("rope_scaling"), parameters = config.find("rope_parameters");
  return scaling && !scaling->value().empty() ? scaling : parameters;
}

RopeSpec read_rope(const JsonReader& config,
                   const std::optional<JsonReader>& rope,
                   int64_t head_width,
                   int64_t max_positions,
                   const RopeReading& reading) {
  constexpr std::string_view kOriginal = "original_max_position_embeddings";
  RopeSpec spec = {.theta = config.number(reading.theta_key, 1, kThetaMax, reading.theta),
                   .max_positions = max_positions};
  double partial = config.number(reading.partial_key, 0, 1, reading.partial);
  int64_t beside = config.integer(kOriginal, 1, kPositionsMax, reading.original_positions);
  if (!reading.has_original_beside) beside = 0;
  spec.original_positions = beside > 0 ? beside : max_positions;
  if (rope) {
    const JsonReader& its = *rope;
    spec.scaling = scaling_of(its, reading);
    its.find("type");  // beside rope_type in files that serve both
    spec.theta = its.number("rope_theta", 1, kThetaMax, spec.theta);
    partial = its.number("partial_rotary_factor", 0, 1, partial);
    const int64_t inside = its.integer(kOriginal, 1, kPositionsMax, spec.original_positions);
    if (beside == 0) spec.original_positions = inside;
    spec.factor = its.number("factor", 0, kFactorMax, 0.0);
    spec.attention_factor = its.number("attention_factor", 0, kFactorMax, 0.0);
    spec.low_frequency_factor = its.number("low_freq_factor", 0, kFactorMax, 1.0);
    spec.high_frequency_factor = its.number("high_freq_factor", 0, kFactorMax, 4.0);
    spec.beta_fast = its.number("beta_fast", 0, kFactorMax, 32.0);
    spec.beta_slow = its.number("beta_slow", 0, kFactorMax, 1.0);
    spec.mscale = its.number("mscale", 0, kFactorMax, 0.0);
    spec.mscale_all_dim = its.number("mscale_all_dim", 0, kFactorMax, 0.0);
    spec.truncate = its.flag("truncate", true);
    spec.short_factor = read_factors(its, "short_factor");
    spec.long_factor = read_factors(its, "long_factor");
    if (const auto unknown = unknown_keys(its); !unknown.empty())
      its.at(unknown.front()).fail("is a rotary scaling that Ferry does not know");
  }
  spec.width = head_width;
  if (reading.turns_part)
    spec.width = static_cast<int64_t>(static_cast<double>(head_width) * partial);
  else if (partial != 1 && spec.scaling != RopeScaling::none)
    (rope ? *rope : config)
        .fail("turns a part of each head, which transformers' class of this model does not");
  if (const char* what = refused_rope(spec)) (rope ? *rope : config).fail(what);
  return spec;
}

std::vector<bool> read_layers_with_window(const JsonReader& config,
                                          int64_t n_layers,
                                          std::vector<bool> otherwise) {
  const auto types = config.find("layer_types");
  if (!types) return otherwise;
  std::vector<bool> has_window;
  for (const std::string& type : types->texts()) {
    if (type != "sliding_attention" && type != "full_attention")
      types->refuse("sliding_attention or full_attention for each layer");
    has_window.push_back(type == "sliding_attention");
  }
  if (static_cast<int64_t>(has_window.size()) != n_layers)
    types->refuse(fmt::format("a type for each of {} layers", n_layers));
  return has_window;
}

void read_window_of_last_layers(const JsonReader& config, DecoderConfig& its) {
  const bool has_window = config.flag("use_sliding_window", false);
  const int64_t n_full = config.integer("max_window_layers", 0, kLayersMax, 28);
  const int64_t window = read_window(config, 4096);
  std::vector<bool> last_layers;
  for (int64_t i = 0; i < its.num_hidden_layers; ++i)
    last_layers.push_back(i >= n_full);
  its.layer_has_window =
      read_layers_with_window(config, its.num_hidden_layers, std::move(last_layers));
  if (has_window) its.window = window;
}

int64_t read_window(const JsonReader& config, int64_t otherwise) {
  const bool is_null = config.value().contains("sliding_window") && !config.find("sliding_window");
  return is_null ? 0 : config.integer("sliding_window", 1, kPositionsMax, otherwise);
}

float read_head_dropout(const JsonReader& config, const TableOptions& options, float its_default) {
  const auto read = [&](std::string_view key, float otherwise) {
    return config.find(key) ? read_dropout(config, key, otherwise) : otherwise;
  };
  const float of_hidden = read("hidden_dropout", its_default);
  return read("classifier_dropout", options.hidden_dropout.value_or(of_hidden));
}

PrefixInFiles prefix_of_answers(const TableOptions& options) {
  constexpr const char* kOfAnswers = "transformer.";
  if (options.head == HeadKind::question_answering) return {.written = kOfAnswers, .others = {}};
  return {.written = {}, .others = {kOfAnswers}};
}

DecoderConfig llama_kin(std::string name, std::string stem) {
  DecoderConfig kin;
  kin.name = std::move(name);
  kin.stem = std::move(stem);
  kin.norm_eps = 1e-6f;
  return kin;
}

DecoderConfig read_llama_like(const JsonReader& config,
                              const TableOptions& options,
                              DecoderConfig c,
                              std::string_view gate) {
  const auto number = [&](std::string_view key, int64_t most, int64_t otherwise) {
    return config.integer(key, 1, most, otherwise > 0 ? std::optional(otherwise) : std::nullopt);
  };
  c.vocab_size = number("vocab_size", kVocabMax, c.vocab_size);
  c.padding_row = read_padding_row(config, c.vocab_size, c.padding_row);
  c.hidden_size = number("hidden_size", kWidthMax, c.hidden_size);
  c.num_hidden_layers = number("num_hidden_layers", kLayersMax, c.num_hidden_layers);
  c.num_attention_heads = number("num_attention_heads", kHeadsMax, c.num_attention_heads);
  const bool says_null =
      config.value().contains("num_key_value_heads") && !config.find("num_key_value_heads");
  if (says_null || c.num_key_value_heads == 0) c.num_key_value_heads = c.num_attention_heads;
  c.num_key_value_heads = number("num_key_value_heads", kHeadsMax, c.num_key_value_heads);
  c.intermediate_size = number("intermediate_size", kIntermediateMax, c.intermediate_size);
  constexpr int64_t kWritten_max = int64_t{1} << 40;
  c.max_position_embeddings = std::min(
      number("max_position_embeddings", kWritten_max, c.max_position_embeddings), kPositionsMax);
  c.tie_word_embeddings = config.flag("tie_word_embeddings", c.tie_word_embeddings);
  c.norm_eps = read_eps(config, c.has_layer_norms ? "layer_norm_eps" : "rms_norm_eps", c.norm_eps);
  c.attention_dropout = read_dropout(config, "attention_dropout", 0);
  c.head_dropout = read_head_dropout(config, options, c.head_dropout);
  c.has_tag_bias = config.flag("token_classification_bias", true);
  c.initializer_range = read_init_std(config);
  c.gate = read_activation(config, gate, c.gate);
  if (config.find("head_dim")) c.head_dim = config.integer("head_dim", 1, kWidthMax);
  if (c.head_dim == 0) {
    expect_divides(config, "num_attention_heads", c.num_attention_heads, "hidden_size",
                   c.hidden_size);
    c.head_dim = c.hidden_size / c.num_attention_heads;
  }
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    expect_divides(config, "num_key_value_heads", c.num_key_value_heads, "num_attention_heads",
                   c.num_attention_heads);
  const bool has_bias = config.flag("attention_bias", false);
  if (c.reads_attention_bias) c.qkv_bias = c.output_bias = has_bias;
  const auto rope = find_rope(config);
  const bool is_each = c.rope_reading.is_of_each_layer_type && rope &&
                       (rope->find("full_attention") || rope->find("sliding_attention"));
  if (!is_each)
    c.rope = read_rope(config, rope, c.head_dim, c.max_position_embeddings, c.rope_reading);
  return c;
}

}  // namespace ferry
