#include "src/config/recipes/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/config/command_line/foreign_flags.h"
#include "src/files/plain_file.h"
#include "src/files/yaml.h"

namespace ferry::config {
namespace {

namespace fs = std::filesystem;

/** The program that a recipe is for. A file of Ferry's own keys, or of TRL's, is of none. */
enum class Program : uint8_t { none, llama_factory, axolotl };

Program program_of(const YamlNode& recipe) {
  const auto has = [&](std::string_view key) { return recipe.find(key) != nullptr; };
  if (has("stage") || has("finetuning_type") || (has("template") && has("cutoff_len")))
    return Program::llama_factory;
  if (has("base_model")) return Program::axolotl;
  return Program::none;
}

std::string_view name_of(Program program) {
  return program == Program::llama_factory ? "LLaMA-Factory" : "axolotl";
}

class RecipeReader {
 public:
  RecipeReader(Config& config, const YamlNode& recipe, const fs::path& file)
      : config_(config), recipe_(recipe), file_(file), program_(program_of(recipe)) {}

  void read() {
    for (const auto& [key, node] : recipe_.fields)
      if (!node.is_null()) read_field(key, node);
    if (program_ == Program::llama_factory) take_lora_by_default();
    if (is_qlora(recipe_.find("adapter"))) take("quantization", "nf4");
    if (program_ == Program::none) return;
    if (!recipe_.find("task") && !recipe_.find("stage") && !recipe_.find("rl") &&
        config_.origin("task").source <= Source::file)
      config_.set("task", "causal-lm", {Source::file, file_.string(), true});
    config_.note(
        fmt::format("'{}' is read as a recipe of {}: keys that it leaves out have Ferry's "
                    "built-in values, not those of {}",
                    file_.string(), name_of(program_), name_of(program_)));
  }

 private:
  std::string where(const YamlNode& node) const {
    return fmt::format("{}:{}", file_.string(), node.line);
  }

  [[noreturn]] void refuse(const YamlNode& node,
                           const std::string& what,
                           const std::string& hint) const {
    throw Error(Fault::usage, "config.recipe", fmt::format("{}: {}", where(node), what), hint);
  }

  /** axolotl's word for LoRA beside weights of 4 bits, or 8 where the recipe says so. */
  static bool is_qlora(const YamlNode* node) {
    return node && node->kind == YamlNode::Kind::scalar && node->text == "qlora";
  }

  /** Sets what the recipe means and does not say, unless it or a stronger source does. */
  void take(const char* key, const char* value) {
    if (config_.origin(key).source <= Source::file && !given_.contains(key))
      config_.set(key, value, {Source::file, file_.string(), true});
  }

  /** LLaMA-Factory trains a LoRA adapter of rank 8 on all linear maps where a recipe says nothing.
   */
  void take_lora_by_default() {
    const YamlNode* type = recipe_.find("finetuning_type");
    const bool says_nothing = !type || type->is_null();
    if (says_nothing) {
      take("tuning", "lora");
      config_.note(fmt::format("'{}' has no finetuning_type: tuning = lora, as LLaMA-Factory does",
                               file_.string()));
    }
    if (config_.text("tuning") == "lora") take("lora_r", "8");
  }

  void read_field(const std::string& key, const YamlNode& node) {
    if (key == "datasets" || key == "pretraining_dataset") return read_datasets("dataset", node);
    if (key == "test_datasets") return read_datasets("eval_dataset", node);
    if (key == "dataset" && program_ == Program::llama_factory)
      return read_named_data("dataset", node);
    if (key == "eval_dataset" && program_ == Program::llama_factory)
      return read_named_data("eval_dataset", node);
    if (key == "dataset_dir" && program_ == Program::llama_factory) return;  // read with dataset
    if (key == "adapter" && is_qlora(&node)) return set("tuning", "lora", node);
    if (key == "special_tokens" && node.kind == YamlNode::Kind::map) return read_tokens(node);
    if (key == "lr_scheduler_kwargs" && node.kind == YamlNode::Kind::map)
      return read_schedule(node);
    const NameMatch match = find_option(key);
    if (node.kind == YamlNode::Kind::scalar) return set(key, node.text, node);
    if (node.kind == YamlNode::Kind::list && match.option && match.option->type == Type::list)
      return set(key, joined(node), node);
    if (match.option)
      refuse(node,
             fmt::format("{} = {}, expected {}", key, node.shown(), expectation(*match.option)),
             "write one value");
    set(key,
        node.items.empty() && node.fields.empty()
            ? (node.kind == YamlNode::Kind::list ? "[]" : "{}")
            : node.shown(),
        node);
  }

  /** Sets a key; two names of one option are said to contradict, unless one is "bf16: false". */
  void set(std::string_view key, const std::string& value, const YamlNode& node) {
    const NameMatch match = find_option(key);
    const bool denies =
        match.alias && !match.alias->means_value.empty() && parse_boolean(value) == false;
    if (match.option && !denies) {
      const auto [entry, is_new] = given_.emplace(match.option->key, where(node));
      if (!is_new)
        throw Error(Fault::usage, "config.file",
                    fmt::format("{} is given twice: {} and {}", match.option->key, entry->second,
                                where(node)),
                    "leave one out");
    }
    config_.set(key, value, {Source::file, where(node), true});
  }

  std::string joined(const YamlNode& list) const {
    std::string text;
    for (const YamlNode& item : list.items) {
      if (item.kind != YamlNode::Kind::scalar)
        refuse(item, "a list of texts is expected here", "write one text an item");
      text += (text.empty() ? "" : ",") + item.text;
    }
    return text;
  }

  /** axolotl's list of {path, type, split, ...}. */
  void read_datasets(std::string_view option, const YamlNode& node) {
    std::vector<const YamlNode*> entries;
    if (node.kind == YamlNode::Kind::list)
      for (const YamlNode& item : node.items)
        entries.push_back(&item);
    else
      entries.push_back(&node);
    std::string files;
    for (const YamlNode* entry : entries)
      files += (files.empty() ? "" : ",") + file_of_entry(*entry);
    set(option, files, node);
  }

  std::string file_of_entry(const YamlNode& entry) {
    if (entry.kind == YamlNode::Kind::scalar) return entry.text;
    const YamlNode* path = entry.find("path");
    if (!path || path->kind != YamlNode::Kind::scalar)
      refuse(entry, "a data set without a path", "write path: FILE");
    std::string name = path->text;
    for (const auto& [key, value] : entry.fields) {
      if (value.is_null() || key == "path" || key == "ds_type" || key == "trust_remote_code")
        continue;
      if (key == "data_files" && value.kind != YamlNode::Kind::map) {
        name = value.kind == YamlNode::Kind::list ? joined(value) : value.text;
      } else if (key == "type") {
        check_rows(value);
      } else if (key == "field" || key == "text_column") {
        set("text_column", value.shown(), value);
      } else if (key == "split" && value.text == "train") {
        continue;  // all rows of the file
      } else {
        refuse(value, fmt::format("datasets.{} = {} is not read", key, value.shown()),
               "make a file of the rows that are meant, with the columns prompt and completion (or "
               "text), and write path: FILE");
      }
    }
    return name;
  }

  /** Forms of rows: those that show in the columns of a file, and those that need a template. */
  void check_rows(const YamlNode& type) const {
    constexpr std::array kShown = {"alpaca", "chat_template", "completion", "pretrain",
                                   "input_output"};
    if (std::ranges::find(kShown, type.text) != kShown.end()) return;
    refuse(type, fmt::format("datasets.type = {} puts texts into a template", type.shown()),
           "leave type out: chats are put into the model's template, and chat_template: model "
           "does it with rows of prompt and completion");
  }

  /** LLaMA-Factory's names of data: those of dataset_dir/dataset_info.json, or files. */
  void read_named_data(std::string_view option, const YamlNode& node) {
    const std::string names = node.kind == YamlNode::Kind::list ? joined(node) : node.shown();
    const YamlNode* dir = recipe_.find("dataset_dir");
    const fs::path directory = dir && dir->kind == YamlNode::Kind::scalar ? dir->text : "data";
    std::string files;
    for (size_t begin = 0; begin <= names.size();) {
      const size_t end = std::min(names.find(',', begin), names.size());
      std::string name = names.substr(begin, end - begin);
      name.erase(0, name.find_first_not_of(' '));
      name.erase(name.find_last_not_of(' ') + 1);
      files += (files.empty() ? "" : ",") + file_of_name(name, directory, node);
      begin = end + 1;
    }
    set(option, files, node);
  }

  std::string file_of_name(const std::string& name,
                           const fs::path& directory,
                           const YamlNode& node) {
    constexpr size_t kInfoLimit_bytes = size_t{16} << 20;
    std::error_code error;
    if (fs::exists(name, error) || name.find('/') != name.npos) return name;
    for (const fs::path& place : {directory, file_.parent_path() / directory}) {
      const fs::path info = place / "dataset_info.json";
      if (!fs::exists(info, error)) continue;
      const auto all =
          JsonReader::parse(read_text_file(info, kInfoLimit_bytes),
                            {info.string(), "config.recipe", "is it LLaMA-Factory's file?"});
      if (const auto entry = all.find(name)) return file_of_info(*entry, name, place, node);
    }
    refuse(node,
           fmt::format("'{}' is no file, and no dataset_info.json in '{}' names it", name,
                       directory.string()),
           "give the file itself: dataset: FILE");
  }

  std::string file_of_info(const JsonReader& entry,
                           const std::string& name,
                           const fs::path& place,
                           const YamlNode& node) {
    const YamlNode* stage = recipe_.find("stage");
    const bool compares = stage && (stage->text == "dpo" || stage->text == "rm");
    if (entry.find("ranking") && !compares)
      refuse(node,
             fmt::format("'{}' has answers that are compared, and the recipe's stage is not dpo",
                         name),
             "--task preference learns from them");
    const auto form = entry.find("formatting");
    constexpr std::array kForms = {"alpaca", "sharegpt", "openai"};
    if (form && std::ranges::find(kForms, form->text()) == kForms.end())
      refuse(node, fmt::format("'{}' is of the form '{}', which is not known", name, form->text()),
             "known are alpaca, sharegpt and openai");
    if (const auto columns = entry.find("columns"); columns && !compares)
      read_columns(*columns, name, node);
    if (const auto file = entry.find("file_name")) return (place / file->text()).string();
    if (const auto id = entry.find("hf_hub_url")) return id->text();
    refuse(node, fmt::format("'{}' has no file_name in dataset_info.json", name),
           "give the file itself: dataset: FILE");
  }

  void read_columns(const JsonReader& columns, const std::string& name, const YamlNode& node) {
    for (const char* other : {"query", "system", "history", "messages"})
      if (columns.find(other))
        refuse(node, fmt::format("'{}' has a column for {}, which would be left out", name, other),
               "make a file with the columns prompt and completion, or instruction, input and "
               "output");
    if (const auto prompt = columns.find("prompt")) set("text_column", prompt->text(), node);
    if (const auto answer = columns.find("response")) set("text_pair_column", answer->text(), node);
  }

  /** A padding token changes nothing here; others would. */
  void read_tokens(const YamlNode& tokens) {
    for (const auto& [key, value] : tokens.fields)
      if (!value.is_null())
        config_.set(key == "pad_token" ? key : "special_tokens", value.shown(),
                    {Source::file, where(value), true});
  }

  void read_schedule(const YamlNode& node) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kKeys = {{
        {"min_lr_rate", "min_lr_rate"},
        {"num_cycles", "lr_num_cycles"},
        {"power", "lr_power"},
        {"gamma", "lr_gamma"},
        {"num_decay_steps", "lr_decay_steps"},
        {"min_lr_ratio", "min_lr_rate"},
    }};
    for (const auto& [key, value] : node.fields) {
      const auto known =
          std::ranges::find(kKeys, key, &std::pair<std::string_view, std::string_view>::first);
      if (known == kKeys.end())
        refuse(value, fmt::format("lr_scheduler_kwargs.{} is not read", key),
               "min_lr_rate, num_cycles, power, gamma and num_decay_steps are");
      if (!value.is_null()) set(known->second, value.text, value);
    }
  }

  Config& config_;
  const YamlNode& recipe_;
  const fs::path& file_;
  const Program program_;
  std::map<std::string_view, std::string> given_;  // key -> where
};

}  // namespace

bool is_yaml(const fs::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".yml";
}

void read_recipe(Config& config, const std::string& text, const fs::path& file) {
  const YamlNode recipe = parse_yaml(text, file);
  if (recipe.is_null()) return;
  if (recipe.kind != YamlNode::Kind::map)
    throw Error(Fault::usage, "config.file",
                fmt::format("'{}' is YAML without keys", file.string()),
                "a setting a line, as learning_rate: 1e-5");
  RecipeReader(config, recipe, file).read();
}

}  // namespace ferry::config
