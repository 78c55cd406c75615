#include "src/files/hf/peft_config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

constexpr const char* kBitFit = "BITFIT";
constexpr const char* kLora = "LORA";

/** Settings that change the formula, with the values that mean they are off. */
struct Refused {
  const char* key;
  const char* why;
};
constexpr Refused kRefused[] = {
    {"use_dora", "DoRA"},
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

}  // namespace

bool is_end_of_name(const std::string& end, const std::string& module) {
  return module == end || module.ends_with("." + end);
}

std::string PeftConfig::base() const {
  return revision.empty() ? base_model : fmt::format("{}@{}", base_model, revision);
}

double PeftConfig::factor(const std::string& module, int64_t rank_of_module) const {
  // PEFT takes a key for a regular expression over the end of a module's name; names of modules are
  // plain texts but for their dots.
  double its_alpha = alpha;
  for (const auto& [end, value] : alphas)
    if (is_end_of_name(end, module)) its_alpha = value;
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
  if (type != kLora && type != kBitFit)
    json.at("peft_type").refuse("LORA", "merge it into its model with peft, and give that");
  config.type = type == kLora ? PeftType::lora : PeftType::bitfit;
  config.base_model = json.text("base_model_name_or_path", "");
  config.revision = json.text("revision", "");
  config.task_type = json.text("task_type", "");
  config.modules_to_save = texts_at(json, "modules_to_save");
  if (config.type == PeftType::bitfit) return config;
  for (const Refused& setting : kRefused)
    if (const auto found = json.find(setting.key); found && !is_off(found->value()))
      found->fail(fmt::format("asks for {}, which Ferry does not have", setting.why),
                  "merge it into its model with peft, and give that");
  if (const auto bias = json.find("bias"); bias && bias->text() != "none")
    bias->refuse("none", "merge it into its model with peft, and give that");
  config.rank = json.integer("r", 1, kRank_max, 8);
  config.alpha = json.number("lora_alpha", -kMost, kMost, 8);
  config.dropout = json.number("lora_dropout", 0, 1, 0);
  config.rank_stabilised = json.flag("use_rslora", false);
  config.transposes = json.flag("fan_in_fan_out", false);
  config.targets = texts_at(json, "target_modules");
  if (const auto ranks = json.find("rank_pattern"))
    for (const auto& [key, value] : ranks->fields())
      config.ranks[key] = value.integer(1, kRank_max);
  if (const auto alphas = json.find("alpha_pattern"))
    for (const auto& [key, value] : alphas->fields())
      config.alphas[key] = value.number(-kMost, kMost);
  return config;
}

nlohmann::ordered_json to_json(const PeftConfig& config) {
  nlohmann::ordered_json json;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  json["base_model_name_or_path"] = or_null(config.base_model);
  json["bias"] = "none";
  json["fan_in_fan_out"] = config.transposes;
  json["inference_mode"] = true;
  json["init_lora_weights"] = true;
  json["lora_alpha"] = config.alpha;
  if (config.alpha == std::floor(config.alpha))
    json["lora_alpha"] = static_cast<int64_t>(config.alpha);
  json["lora_dropout"] = config.dropout;
  json["modules_to_save"] = config.modules_to_save.empty()
                                ? nlohmann::ordered_json()
                                : nlohmann::ordered_json(config.modules_to_save);
  json["peft_type"] = config.type == PeftType::lora ? kLora : kBitFit;
  json["r"] = config.rank;
  json["rank_pattern"] = config.ranks;
  json["alpha_pattern"] = config.alphas;
  json["revision"] = or_null(config.revision);
  json["target_modules"] = config.targets;
  json["task_type"] = or_null(config.task_type);
  json["use_rslora"] = config.rank_stabilised;
  return json;
}

}  // namespace ferry
