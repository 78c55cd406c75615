#include "src/request/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/adapters/bottleneck.h"
#include "models/adapters/lora.h"
#include "models/adapters/prompt_head.h"
#include "models/adapters/soft_tokens.h"
#include "models/core/prompt.h"
#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/config/models/models.h"
#include "src/config/options/option.h"
#include "src/config/options/tuning.h"
#include "src/config/options/value.h"
#include "src/request/frozen_storage.h"

namespace ferry {
namespace {

bool is_pattern(const std::string& item) {
  return item.find_first_of("*?[") != item.npos;
}

/** PEFT's match of a module by the end of its name, or a pattern over the whole name. */
bool names_module(const std::string& item, const std::string& module) {
  if (is_pattern(item)) return fnmatch(item.c_str(), module.c_str(), FNM_NOESCAPE) == 0;
  return is_end_of_name(item, module);
}

/** A module of the item's name holds the tensor. */
bool names_tensor(const std::string& item, const std::string& tensor) {
  if (is_pattern(item)) return fnmatch(item.c_str(), tensor.c_str(), FNM_NOESCAPE) == 0;
  return ("." + tensor).find("." + item + ".") != std::string::npos;
}

bool names_tensor(const std::string& item, const HfEntry& entry) {
  const auto is_named = [&](const std::string& name) { return names_tensor(item, name); };
  return is_named(entry.hf_name) || std::ranges::any_of(entry.also_named, is_named) ||
         std::ranges::any_of(entry.tied_names, is_named);
}

bool is_all(const std::vector<std::string>& targets) {
  return targets.size() == 1 && (targets.front() == "all-linear" || targets.front() == "all");
}

/** The last parts of modules' names, which people choose among. */
std::set<std::string> short_names(const std::vector<std::string>& modules) {
  std::set<std::string> names;
  for (const std::string& module : modules)
    names.insert(module.substr(module.find_last_of('.') + 1));
  return names;
}

void check_targets(const config::Config& config,
                   const std::vector<std::string>& targets,
                   const ModelTable& model) {
  const std::vector<std::string> modules = linear_modules(model);
  const std::string where = config.origin("lora_targets").where;
  if (targets.empty())
    throw Error(Fault::usage, "config.lora_targets", "no module gets an adapter",
                "lora_targets takes names of linear maps, or all-linear");
  for (const std::string& item : targets) {
    if (std::ranges::any_of(modules,
                            [&](const std::string& module) { return names_module(item, module); }))
      continue;
    const std::set<std::string> names = short_names(modules);
    if (std::ranges::any_of(model.hf_names,
                            [&](const HfEntry& entry) { return names_tensor(item, entry); }))
      throw Error(
          Fault::usage, "config.lora_targets",
          fmt::format("'{}' of lora_targets ({}) is no linear map of the layers", item, where),
          fmt::format("train it whole: --modules-to-save {}", item));
    const std::string nearest = nearest_name(item, {names.begin(), names.end()});
    throw Error(
        Fault::usage, "config.lora_targets",
        fmt::format("'{}' of lora_targets ({}) names no linear map of this model", item, where),
        nearest.empty() ? fmt::format("it has {}", fmt::join(names, ", "))
                        : fmt::format("did you mean '{}'?", nearest));
  }
}

/** An option can only say the same of all tensors that are one parameter. */
void check_whole(const ModelTable& model, const std::function<bool(const HfEntry&)>& is_whole) {
  std::map<std::pair<int, int>, const HfEntry*> first;
  for (const HfEntry& entry : model.hf_names) {
    const auto [found, is_new] = first.try_emplace({entry.block, entry.param}, &entry);
    if (!is_new && is_whole(*found->second) != is_whole(entry))
      throw Error(
          Fault::usage, "config.modules_to_save",
          fmt::format("modules_to_save takes '{}' apart from '{}': the two are stored as one "
                      "parameter",
                      entry.hf_name, found->second->hf_name),
          "name both, or neither");
  }
}

/** Parameters that are trained whole. A head that files may lack is new to the model. */
std::function<bool(const HfEntry&)> whole_by(const config::Config& config,
                                             const ModelTable& model) {
  const std::vector<std::string> modules = config.list("modules_to_save");
  for (const std::string& item : modules)
    if (std::ranges::none_of(model.hf_names,
                             [&](const HfEntry& entry) { return names_tensor(item, entry); }))
      throw Error(Fault::usage, "config.modules_to_save",
                  fmt::format("'{}' of modules_to_save ({}) names no module of this model", item,
                              config.origin("modules_to_save").where),
                  fmt::format("names of tensors are like '{}'", model.hf_names.front().hf_name));
  const bool has_new_head = !is_language_model(model.head) && model.head != HeadKind::prompt;
  const bool takes_biases = config.text("tuning") == "bitfit";
  return [=](const HfEntry& entry) {
    return (has_new_head && entry.optional) || is_of_prompt(entry) ||
           (takes_biases && entry.hf_name.ends_with(".bias")) ||
           std::ranges::any_of(modules,
                               [&](const std::string& item) { return names_tensor(item, entry); });
  };
}

double alpha_of(const config::Config& config) {
  return config.maybe_number("lora_alpha")
      .value_or(2 * static_cast<double>(config.integer("lora_r")));
}

PeftType type_of(const std::string& tuning) {
  if (tuning == "soft_prompt") return PeftType::prompt_tuning;
  std::string name = tuning;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return peft_type_named(name).value();
}

/** The columns of a bottleneck, by OpenDelta's reductions where nobody says. */
int64_t size_of_adapter(const config::Config& config, PeftType type, int64_t width) {
  constexpr int64_t kUsual = 24, kOfLowRank = 32, kOfCompacter = 16;
  if (const auto said = config.maybe_integer("adapter_size")) return *said;
  const int64_t size = type == PeftType::low_rank_adapter ? width / kOfLowRank
                       : type == PeftType::compacter      ? width / kOfCompacter
                                                          : kUsual;
  const int64_t unit = type == PeftType::compacter ? config.integer("compacter_division") : 1;
  return std::max(size / unit, int64_t{1}) * unit;
}

/** The settings as PEFT has them, beside a model of this width. */
PeftConfig settings_of(const config::Config& config, int64_t width) {
  PeftConfig settings;
  settings.type = type_of(config.text("tuning"));
  if (is_bottleneck(settings.type)) {
    settings.size = size_of_adapter(config, settings.type, width);
    settings.scale = config.number("adapter_scale");
    settings.division = config.integer("compacter_division");
  }
  settings.rank = config.integer("lora_r");
  settings.alpha = alpha_of(config);
  settings.dropout = config.number("lora_dropout");
  settings.rank_stabilised = config.flag("use_rslora");
  settings.dora = config.flag("use_dora");
  return settings;
}

/** transformers multiplies some families' words where they are looked up, others behind that. */
void refuse_scaled_words(const PeftConfig& settings, const ModelTable& model) {
  if (settings.type != PeftType::prompt_tuning || !model.family.starts_with("gemma")) return;
  throw Error(Fault::usage, "config.tuning",
              fmt::format("soft prompts of {} models are not there yet", model.family),
              "--tuning lora trains them");
}

/** Virtual tokens by the settings; those of a text get their start where there is a tokenizer. */
void add_virtual_tokens(const config::Config& config, ModelTable& model) {
  refuse_scaled_words(settings_of(config, model.width), model);
  if (model.n_soft_tokens > 0) {  // of a template, in place of virtual ones
    if (config.origin("num_virtual_tokens").source == config::Source::command_line)
      throw Error(Fault::usage, "config.num_virtual_tokens",
                  "the template has soft tokens, and virtual ones would stand before it",
                  "leave num_virtual_tokens out, or the soft tokens");
    return;
  }
  std::vector<SoftToken> tokens(static_cast<size_t>(config.integer("num_virtual_tokens")));
  if (config.text("prompt_tuning_init") == "vocab")
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = {static_cast<int32_t>(i % static_cast<size_t>(model.vocab_size))};
  add_soft_tokens(model, tokens, std::string(kPromptEmbeddings), /*is_delta=*/true);
}

/** The facts of a model and its virtual tokens for PEFT. */
PeftPrompt prompt_of(const config::Config& config, const ModelTable& model) {
  const std::string& init = config.text("prompt_tuning_init");
  const auto n_layers = std::ranges::count(model.blocks, BlockKind::layer, &BlockTable::kind);
  return {.n_tokens = config.integer("num_virtual_tokens"),
          .token_width = find_soft_tokens(model)->hf_shape.back(),
          .n_layers = n_layers,
          .n_heads = model.width / std::max<int64_t>(model.head_width, 1),
          .init = init == "text"    ? "TEXT"
                  : init == "vocab" ? "SAMPLE_VOCAB"
                                    : "RANDOM",
          .init_text = config.text("prompt_tuning_init_text"),
          .tokenizer = init == "text" ? config.text("model_name_or_path") : std::string()};
}

/** A setting of adapters that has no effect was meant to have one. */
void check_used(const config::Config& config) {
  const std::string& tuning = config.text("tuning");
  for (const config::Option& option : config::option_table()) {
    if (config::suits_tuning(option, tuning)) continue;
    if (config.value(option.key) == config::value_from_text(option, option.value)) continue;
    // A word of the command line takes back the adapters of a file or a preset.
    if (config.origin(option.key).source < config.origin("tuning").source) continue;
    const auto tunings = config::tunings_of(option);
    throw Error(Fault::usage, "config.tuning",
                fmt::format("{} ({}) is for tuning = {}, and tuning is {}", option.key,
                            config.origin(option.key).where, fmt::join(tunings, ", "), tuning),
                fmt::format("add --tuning {}, or leave it out", tunings.front()));
  }
}

/** PEFT puts virtual tokens before texts where it knows the task. It has none of masked models. */
std::string task_type_of(const ModelTable& model) {
  switch (model.head) {
    case HeadKind::classification:
      return "SEQ_CLS";
    case HeadKind::token_classification:
      return "TOKEN_CLS";
    case HeadKind::question_answering:
      return "QUESTION_ANS";
    case HeadKind::causal_lm:
      return "CAUSAL_LM";
    case HeadKind::prompt:
      if (model.hf_architecture.find("MaskedLM") == std::string::npos) return "CAUSAL_LM";
      break;
    case HeadKind::masked_lm:
      break;
  }
  return {};
}

/** The largest module around a tensor all of whose tensors are trained whole. PEFT finds
 * "classifier" by itself, and would find the modules in it twice. */
std::string whole_module_of(const ModelTable& model, const std::string& tensor) {
  const auto is_whole = [&](const std::string& module) {
    return std::ranges::none_of(model.hf_names, [&](const HfEntry& entry) {
      return !entry.is_delta && entry.hf_name.starts_with(module + ".");
    });
  };
  for (size_t dot = tensor.find('.'); dot != tensor.npos; dot = tensor.find('.', dot + 1))
    if (is_whole(tensor.substr(0, dot))) return tensor.substr(0, dot);
  return tensor.substr(0, tensor.find_last_of('.'));
}

/** The name of a tensor of an adapter in its model; empty: it is none. */
std::string name_in_model(const std::string& tensor) {
  const std::string_view prefix = kPeftPrefix;
  return tensor.starts_with(prefix) ? tensor.substr(prefix.size()) : std::string();
}

/** Adapters with a bottleneck, by their settings. */
void add_bottlenecks_of(const PeftConfig& settings, const IsWhole& is_whole, ModelTable& model) {
  const auto kind = [&] {
    switch (settings.type) {
      case PeftType::parallel_adapter:
        return BottleneckKind::parallel;
      case PeftType::low_rank_adapter:
        return BottleneckKind::low_rank;
      case PeftType::compacter:
        return BottleneckKind::compacter;
      default:
        return BottleneckKind::adapter;
    }
  };
  add_bottlenecks(model, {.kind = kind(),
                          .size = settings.size,
                          .scale = static_cast<float>(settings.scale),
                          .division = settings.division,
                          .is_whole = is_whole});
}

}  // namespace

void add_adapters(const config::Config& config, ModelTable& model) {
  check_used(config);
  if (config.text("tuning") == "full") return;
  if (!config.text("config_name").empty())
    throw Error(Fault::usage, "config.tuning",
                fmt::format("tuning = {} trains a few parameters beside those of a model, and one "
                            "from scratch ({}) has none that are worth keeping",
                            config.text("tuning"), config.origin("config_name").where),
                "leave out --tuning, or name a model: --model");
  const PeftConfig settings = settings_of(config, model.width);
  std::vector<std::string> targets = config.list("lora_targets");
  const bool has_lora = settings.type == PeftType::lora;
  const bool takes_all = is_all(targets);
  if (has_lora && !takes_all) check_targets(config, targets, model);
  const auto is_whole = whole_by(config, model);
  check_whole(model, is_whole);
  if (is_bottleneck(settings.type)) {
    add_bottlenecks_of(settings, is_whole, model);
    return store_frozen(config, model);
  }
  if (settings.type == PeftType::bitfit && std::ranges::none_of(model.hf_names, is_whole))
    throw Error(Fault::usage, "config.tuning",
                fmt::format("tuning = bitfit trains the biases alone, and this {} model has none",
                            model.family),
                "--tuning lora adds matrices of its own");
  add_lora(model, {.of = [&](const std::string& module) -> std::optional<LoraOfModule> {
                     const bool is_target =
                         takes_all || std::ranges::any_of(targets, [&](const auto& item) {
                           return names_module(item, module);
                         });
                     if (!has_lora || !is_target) return std::nullopt;
                     return LoraOfModule{
                         .rank = settings.rank,
                         .factor = static_cast<float>(settings.factor(module, settings.rank))};
                   },
                   .dropout = static_cast<float>(settings.dropout),
                   .dora = settings.dora,
                   .is_whole = is_whole});
  if (settings.type == PeftType::prompt_tuning) add_virtual_tokens(config, model);
  store_frozen(config, model);
}

PeftConfig peft_config_of(const config::Config& config, const ModelTable& model) {
  PeftConfig settings = settings_of(config, model.width);
  settings.base_model = config.text("model_name_or_path");
  if (const auto repo = config::hub_model_of(settings.base_model)) {
    settings.base_model = repo->id;
    if (repo->revision != "main") settings.revision = repo->revision;
  }
  settings.task_type = task_type_of(model);
  const HfEntry* soft = find_soft_tokens(model);
  if (settings.type == PeftType::prompt_tuning && soft->hf_name == kPromptEmbeddings)
    settings.prompt = prompt_of(config, model);
  else if (settings.type == PeftType::prompt_tuning)
    settings.type = PeftType::bitfit;  // soft tokens of a template are no kind of PEFT's
  std::set<std::string> whole, targets;
  for (const HfEntry& entry : model.hf_names) {
    if (!entry.is_delta) continue;
    const std::string name = name_in_model(entry.hf_name);
    if (name.empty()) continue;  // virtual tokens
    const std::string adapted = adapted_module_of(entry) + bottleneck_module_of(entry.hf_name);
    if (!adapted.empty()) {
      targets.insert(adapted);
    } else {
      whole.insert(whole_module_of(model, name));
      settings.keeps_ties |= !entry.tied_names.empty();
    }
  }
  settings.transposes = std::ranges::any_of(model.hf_names, [&](const HfEntry& entry) {
    return entry.transposed && targets.contains(module_of(entry));
  });
  settings.targets.assign(targets.begin(), targets.end());
  settings.modules_to_save.assign(whole.begin(), whole.end());
  return settings;
}

void add_adapter_of(const HfDirectory& directory, ModelTable& model) {
  if (!directory.adapter()) return;
  const PeftConfig& settings = *directory.adapter();
  refuse_scaled_words(settings, model);
  const CheckpointReader file = directory.adapter_weights();
  std::map<std::string, int64_t> ranks;
  std::set<std::string> whole;
  for (const StoredTensor* tensor : file.tensors()) {
    const std::string name = name_in_model(tensor->name);
    if (is_bottleneck(settings.type) && !bottleneck_module_of(tensor->name).empty()) continue;
    if (name.ends_with(kLoraA) && tensor->shape.size() == 2)
      ranks[name.substr(0, name.size() - kLoraA.size())] = tensor->shape[0];
    else if (!name.empty() && !name.ends_with(kLoraB) && !name.ends_with(kLoraMagnitude))
      whole.insert(name);
  }
  const IsWhole is_whole = [&](const HfEntry& entry) {
    return whole.contains(entry.hf_name) ||
           std::ranges::any_of(entry.also_named,
                               [&](const std::string& name) { return whole.contains(name); });
  };
  if (is_bottleneck(settings.type)) return add_bottlenecks_of(settings, is_whole, model);
  const std::vector<std::string> modules = linear_modules(model);
  for (const auto& [module, rank] : ranks)
    if (std::ranges::find(modules, module) == modules.end())
      throw Error(
          Fault::data, "adapter.open",
          fmt::format("the adapter '{}' is for a module '{}', which the model '{}' does not "
                      "have",
                      directory.path().string(), module, directory.base().string()),
          "is it an adapter of this model? base_model_name_or_path of its "
          "adapter_config.json says which one it is for");
  add_lora(model, {.of = [&](const std::string& module) -> std::optional<LoraOfModule> {
                     const auto found = ranks.find(module);
                     if (found == ranks.end()) return std::nullopt;
                     return LoraOfModule{
                         .rank = found->second,
                         .factor = static_cast<float>(settings.factor(module, found->second))};
                   },
                   .dora = settings.dora,
                   .is_whole = is_whole});
  if (settings.type == PeftType::prompt_tuning)
    add_soft_tokens(model, std::vector<SoftToken>(static_cast<size_t>(settings.prompt.n_tokens)),
                    std::string(kPromptEmbeddings), /*is_delta=*/true);
}

}  // namespace ferry
