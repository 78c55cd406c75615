#include "src/files/hf/peft_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

constexpr const char* kPromptTuning = "PROMPT_TUNING";
constexpr std::array<std::string_view, 7> kPeftTypes = {
    "LORA",     kPromptTuning, "BITFIT", "ADAPTER", "PARALLEL_ADAPTER", "LOW_RANK_ADAPTER",
    "COMPACTER"};
constexpr const char* kMergeHint = "merge it into its model with peft, and give that";

/** Settings that change the formula, with the values that mean they are off. */
struct Refused {
  const char* key;
  const char* why;
};
constexpr Refused kRefused[] = {
    {"lora_bias", "a bias of the adapter itself"},
    {"target_parameters", "adapters of tensors that are no linear map"},
    {"trainable_token_indices", "rows of the embeddings"},
    {"layer_replication", "layers that stand in a model twice"},
    {"use_qalora", "QALoRA"},
    {"use_bdlora", "block-diagonal LoRA"},
    {"kasa_config", "KaSA"},
    {"arrow_config", "Arrow"},
    {"velora_config", "VeLoRA"},
    {"monteclora_config", "MonteCLoRA"},
    {"alora_invocation_tokens", "activated LoRA"},
    {"megatron_config", "Megatron's linear maps"},
};

bool is_off(const nlohmann::ordered_json& value) {
  return value.is_null() || value == false || value == "none" ||
         ((value.is_object() || value.is_array() || value.is_string()) && value.empty());
}

/** A list, or a single text. */
std::vector<std::string> texts_at(const JsonReader& json, std::string_view key) {
  const auto found = json.find(key);
  if (!found) return {};
  return found->is_text() ? std::vector{found->text()} : found->texts();
}

/** A key of alpha_pattern as the end of a name. PEFT takes keys for regular expressions. */
std::string end_of_name(const JsonReader& pattern, const std::string& key) {
  std::string end;
  for (size_t i = 0; i < key.size(); ++i) {
    if (key.compare(i, 2, "\\.") == 0) continue;  // the dot itself comes next
    if (std::string_view("\\^$*+?()[]{}|").find(key[i]) != std::string_view::npos)
      pattern.fail(fmt::format("has the pattern '{}', and Ferry takes ends of names alone", key),
                   kMergeHint);
    end += key[i];
  }
  return end;
}

/** Starts that change the model's weights, too: the adapter would be added to others than it was
 * trained beside. */
void check_start(const JsonReader& json) {
  constexpr std::array<std::string_view, 3> kOfAdapterAlone = {"gaussian", "eva", "orthogonal"};
  const auto start = json.find("init_lora_weights");
  if (!start || !start->is_text() || std::ranges::count(kOfAdapterAlone, start->text()) > 0) return;
  start->fail(fmt::format("is '{}', which may change the model's own weights", start->text()),
              "convert it to plain LoRA with peft (path_initial_model_for_weight_conversion), or "
              "merge it into its model with peft, and give that");
}

PeftPrompt read_prompt(const JsonReader& json) {
  constexpr int64_t kTokens_max = 1 << 20;
  // An encoder-decoder has two submodules, and each has tokens.
  if (json.integer("num_transformer_submodules", 1, 2, 1) != 1)
    json.at("num_transformer_submodules").refuse("1");
  return {.n_tokens = json.integer("num_virtual_tokens", 1, kTokens_max)};
}

nlohmann::ordered_json prompt_to_json(const PeftConfig& config) {
  const PeftPrompt& prompt = config.prompt;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  return {{"base_model_name_or_path", or_null(config.base_model)},
          {"inference_mode", true},
          {"modules_to_save", config.modules_to_save.empty()
                                  ? nlohmann::ordered_json()
                                  : nlohmann::ordered_json(config.modules_to_save)},
          {"num_attention_heads", prompt.n_heads},
          {"num_layers", prompt.n_layers},
          {"num_transformer_submodules", 1},
          {"num_virtual_tokens", prompt.n_tokens},
          {"peft_type", kPromptTuning},
          {"prompt_tuning_init", prompt.init},
          {"prompt_tuning_init_text", or_null(prompt.init_text)},
          {"revision", or_null(config.revision)},
          {"task_type", or_null(config.task_type)},
          {"token_dim", prompt.token_width},
          {"tokenizer_name_or_path", or_null(prompt.tokenizer)}};
}

}  // namespace

std::string_view name_of(PeftType type) {
  return kPeftTypes[static_cast<size_t>(type)];
}

std::optional<PeftType> peft_type_named(std::string_view name) {
  const auto* const found = std::ranges::find(kPeftTypes, name);
  if (found == kPeftTypes.end()) return std::nullopt;
  return static_cast<PeftType>(found - kPeftTypes.begin());
}

bool is_end_of_name(const std::string& end, const std::string& module) {
  return module == end || module.ends_with("." + end);
}

std::string PeftConfig::base() const {
  return revision.empty() ? base_model : fmt::format("{}@{}", base_model, revision);
}

double PeftConfig::factor(const std::string& module, int64_t rank_of_module) const {
  const auto found = std::ranges::find_if(
      alphas, [&](const auto& of_end) { return is_end_of_name(of_end.first, module); });
  const double its_alpha = found == alphas.end() ? alpha : found->second;
  const auto r = static_cast<double>(rank_of_module);
  return its_alpha / (rank_stabilised ? std::sqrt(r) : r);
}

PeftConfig read_peft_config(const std::filesystem::path& file) {
  constexpr int64_t kRank_max = 1 << 20;
  constexpr double kMost = std::numeric_limits<float>::max();
  const JsonReader json = JsonReader::parse(
      read_text_file(file), {file.string(), "adapter.open", "is it of PEFT's save_pretrained?"});
  PeftConfig config;
  const std::string type = json.text("peft_type");
  const std::optional<PeftType> known = peft_type_named(type);
  if (!known) json.at("peft_type").refuse("LORA or PROMPT_TUNING", kMergeHint);
  config.type = *known;
  config.base_model = json.text("base_model_name_or_path", "");
  config.revision = json.text("revision", "");
  config.task_type = json.text("task_type", "");
  config.modules_to_save = texts_at(json, "modules_to_save");
  if (config.type == PeftType::prompt_tuning) config.prompt = read_prompt(json);
  if (is_bottleneck(config.type)) {
    config.size = json.integer("adapter_size", 1, kRank_max);
    config.scale = json.number("adapter_scale", -kMost, kMost, 1);
    config.division = json.integer("compacter_division", 1, kRank_max, 4);
  }
  if (config.type != PeftType::lora) return config;
  for (const Refused& setting : kRefused)
    if (const auto found = json.find(setting.key); found && !is_off(found->value()))
      found->fail(fmt::format("asks for {}, which Ferry does not have", setting.why), kMergeHint);
  check_start(json);
  if (const auto bias = json.find("bias"); bias && bias->text() != "none")
    bias->refuse("none", kMergeHint);
  config.rank = json.integer("r", 1, kRank_max, 8);
  config.alpha = json.number("lora_alpha", -kMost, kMost, 8);
  config.dropout = json.number("lora_dropout", 0, 1, 0);
  config.rank_stabilised = json.flag("use_rslora", false);
  config.dora = json.flag("use_dora", false);
  config.transposes = json.flag("fan_in_fan_out", false);
  config.targets = texts_at(json, "target_modules");
  if (const auto alphas = json.find("alpha_pattern"))
    for (const auto& [key, value] : alphas->fields())
      config.alphas.emplace_back(end_of_name(*alphas, key), value.number(-kMost, kMost));
  return config;
}

nlohmann::ordered_json to_json(const PeftConfig& config) {
  if (config.type == PeftType::prompt_tuning) return prompt_to_json(config);
  nlohmann::ordered_json json;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  json["base_model_name_or_path"] = or_null(config.base_model);
  json["bias"] = "none";
  json["fan_in_fan_out"] = config.transposes;
  json["inference_mode"] = true;
  json["modules_to_save"] = config.modules_to_save.empty()
                                ? nlohmann::ordered_json()
                                : nlohmann::ordered_json(config.modules_to_save);
  json["peft_type"] = name_of(config.type);
  json["ensure_weight_tying"] = config.keeps_ties;
  json["revision"] = or_null(config.revision);
  json["target_modules"] = config.targets;
  json["task_type"] = or_null(config.task_type);
  if (is_bottleneck(config.type)) {
    json["adapter_size"] = config.size;
    if (config.type == PeftType::parallel_adapter) json["adapter_scale"] = config.scale;
    if (config.type == PeftType::compacter) json["compacter_division"] = config.division;
    return json;
  }
  json["init_lora_weights"] = true;
  json["lora_alpha"] = config.alpha;
  if (config.alpha == std::floor(config.alpha))
    json["lora_alpha"] = static_cast<int64_t>(config.alpha);
  json["lora_dropout"] = config.dropout;
  json["r"] = config.rank;
  json["rank_pattern"] = json["alpha_pattern"] = nlohmann::ordered_json::object();
  for (const auto& [end, alpha] : config.alphas)
    json["alpha_pattern"][end] = alpha;
  json["use_dora"] = config.dora;
  json["use_rslora"] = config.rank_stabilised;
  return json;
}

}  // namespace ferry
