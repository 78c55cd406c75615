#include "src/inputs/chosen_task.h"

#include <fmt/format.h>

#include <optional>

#include "models/family.h"
#include "src/base/error.h"
#include "src/config/models/models.h"
#include "src/data/run_dataset.h"
#include "src/files/hf/hf_config.h"
#include "src/inputs/data.h"
#include "src/inputs/model_files.h"
#include "src/tasks/task.h"

namespace ferry {
namespace {

constexpr std::string_view kTask = "causal-lm";
constexpr std::string_view kPairsTask = "preference";

/** The configuration of the model, where it is on this machine or known by its name. */
std::optional<HfConfig> config_of_model(const config::Config& config) {
  if (draws_weights(config)) return find_scratch_model(config).config;
  const std::string& name = config.text("model_name_or_path");
  if (name.empty()) return std::nullopt;
  try {
    return HfConfig::load(config::config_file_of(config::find_model(name)));
  } catch (const Error&) {
    const auto known = config::known_model_config(name);
    if (!known) throw;
    return HfConfig::parse(*known, name);
  }
}

/** A decoder that is not a classifier already. */
bool is_language_model(const HfConfig& model) {
  if (!family_of(model.fields()).is_decoder) return false;
  return model.architectures.empty() || kind_of_model(model).name == kTask;
}

bool holds_chats(const config::Config& config, const std::string& data) {
  const auto first = first_row(config, data, RowForm::documents);
  return first && first->is_chat;
}

/** The data can be read with labels, those of a column that is one by its name or alone. */
bool has_labels(const config::Config& config, const std::string& data) {
  if (holds_chats(config, data)) return false;
  const auto setting = [&](std::string_view key) { return config.maybe_text(key); };
  const auto opens = [&](LabelUse labels) {
    const auto reader = open_dataset(dataset_options(setting, data, {.labels = labels}));
    return reader->scheme().problem != ProblemType::unlabelled;
  };
  if (opens(LabelUse::optional)) return true;  // throws for data that are no texts at all
  try {
    return opens(LabelUse::required);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string choose_task(config::Config& config) {
  if (config.is_set("task")) return {};
  if (!config.text("prompt_template").empty()) {
    config.choose("task", "prompt-classification", "prompt_template");
    return "task = prompt-classification: there is a template";
  }
  for (const char* key : {"label_column", "problem_type"})
    if (config.is_set(key)) return {};
  try {
    const auto model = config_of_model(config);
    if (!model || !is_language_model(*model)) return {};
    const std::string& data = config.text("dataset");
    if (!data.empty() && holds_pairs(config, data)) {
      config.choose("task", kPairsTask, "the model and the data");
      return fmt::format(
          "task = {}: the model is a decoder, and rows of '{}' have a chosen and a rejected answer "
          "(--task reward trains a reward model)",
          kPairsTask, data);
    }
    if (!data.empty() && has_labels(config, data)) return {};
    const std::string why =
        data.empty() ? "the model is a decoder, and no data are given"
                     : fmt::format("the model is a decoder, and '{}' has no labels", data);
    config.choose("task", kTask, "the model and the data");
    return fmt::format("task = {}: {} (--task classification trains a classifier)", kTask, why);
  } catch (const Error&) {  // whoever opens the model or the data says what is wrong
    return {};
  }
}

}  // namespace ferry
