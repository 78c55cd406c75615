#include "models/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace ferry {
namespace {

/** Keys that name or describe a model, say how others run it, or how it generates: none changes
 * what it computes in training. As transformers 4 and 5 write them. */
constexpr std::array<std::string_view, 96> kHarmless = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_attn_implementation_internal",
    "_commit_hash",
    "_flash_attn_2_enabled",
    "_model_name_or_path",
    "_name_or_path",
    "_num_labels",
    "adapters",  // AdapterHub's; adapters lie in files of their own
    "architectures",
    "attn_implementation",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "cls_token_id",
    "custom_pipelines",
    "decoder_start_token_id",
    "directionality",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "eos_token_ids",
    "exponential_decay_length_penalty",
    "ferry_prompt",
    "ferry_text_pairs",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "hub_mixin_id",
    "id2label",
    "initializer_range",
    "is_composition",
    "label2id",
    "language",
    "length_penalty",
    "license",
    "mask_token_id",
    "max_length",
    "min_length",
    "model_max_length",
    "model_type",
    "name",
    "neftune_noise_alpha",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_scores",
    "pad_token_id",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "sbert_ce_default_activation_function",  // of CrossEncoder's predictions
    "sentence_transformers",
    "sep_token_id",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
    "use_return_dict",
    "vocab_file",
    "xla_device",
};
static_assert(std::ranges::is_sorted(kHarmless));

/** Keys of heads that are none of Ferry's: summaries of sequences, for multiple choice. */
constexpr std::string_view kSummary = "summary_";

bool is_off(const nlohmann::ordered_json& value) {
  return value.is_null() || value == false || (value.is_number() && value == 0) ||
         ((value.is_string() || value.is_array() || value.is_object()) &&
          (value.empty() || value == ""));
}

}  // namespace

float read_dropout(const JsonReader& config, std::string_view key, float otherwise) {
  return static_cast<float>(config.number(key, 0, kDropoutMax, otherwise));
}

float read_eps(const JsonReader& config, std::string_view key, float otherwise) {
  constexpr double kEpsMax = 0.999;
  return static_cast<float>(config.number(key, 0, kEpsMax, otherwise));
}

float read_init_std(const JsonReader& config, std::string_view key, float otherwise) {
  constexpr double kStdMax = 1e3;
  return static_cast<float>(config.number(key, 0, kStdMax, otherwise));
}

int64_t read_padding_row(const JsonReader& config, int64_t vocab_size, int64_t otherwise) {
  if (const auto row = config.find("pad_token_id")) {
    const int64_t id = row->integer(-vocab_size, vocab_size - 1);
    return id < 0 ? id + vocab_size : id;
  }
  if (config.value().contains("pad_token_id")) return -1;
  if (otherwise >= vocab_size)
    config.at("vocab_size")
        .fail(fmt::format("is {}, and pad_token_id, which is {} where it is absent, lies beyond it",
                          vocab_size, otherwise),
              "set pad_token_id, or null for none");
  return otherwise;
}

Activation read_activation(const JsonReader& config, std::string_view key, Activation otherwise) {
  constexpr std::pair<std::string_view, Activation> kNames[] = {
      {"gelu", Activation::gelu},           {"gelu_new", Activation::gelu_tanh},
      {"gelu_fast", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"relu", Activation::relu},           {"silu", Activation::silu},
      {"swish", Activation::silu},          {"quick_gelu", Activation::quick_gelu},
  };
  const auto value = config.find(key);
  if (!value) return otherwise;
  for (const auto& [name, activation] : kNames)
    if (value->is_text() && value->text() == name) return activation;
  value->refuse("gelu, gelu_new, gelu_pytorch_tanh, relu, silu or quick_gelu");
}

void expect_text(const JsonReader& config,
                 std::string_view key,
                 std::string_view expected,
                 std::string_view hint) {
  const auto value = config.find(key);
  if (value && !(value->is_text() && value->text() == expected))
    value->refuse(fmt::format("'{}', which alone Ferry computes", expected), hint);
}

void expect_off(const JsonReader& config, std::string_view key, std::string_view hint) {
  const auto value = config.find(key);
  if (value && !is_off(value->value())) value->refuse("false", hint);
}

void expect_on(const JsonReader& config, std::string_view key, std::string_view hint) {
  const auto value = config.find(key);
  if (value && value->value() != true) value->refuse("true", hint);
}

void pass_over(const JsonReader& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    config.find(key);
}

void expect_divides(const JsonReader& config,
                    std::string_view divisor_key,
                    int64_t divisor,
                    std::string_view key,
                    int64_t value) {
  if (value % divisor != 0)
    config.at(divisor_key)
        .fail(fmt::format("is {}, which does not divide {} {}", divisor, key, value));
}

std::vector<std::string> unknown_keys(const JsonReader& config) {
  std::vector<std::string> unknown;
  for (const std::string& key : config.unread_keys())
    if (!std::ranges::binary_search(kHarmless, key) && !key.starts_with(kSummary) &&
        !is_off(config.value().at(key)))
      unknown.push_back(key);
  return unknown;
}

}  // namespace ferry
