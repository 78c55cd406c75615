#include "gui/models/results/model_form.h"

#include <QCoreApplication>
#include <nlohmann/json.hpp>

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/chat/template_source.h"
#include "src/config/config.h"
#include "src/config/models/models.h"
#include "src/tasks/task.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

struct ModelFormWords {
  Q_DECLARE_TR_FUNCTIONS(ModelFormWords)
};

FormKind form_of(std::string_view task) {
  if (task == "causal-lm") return FormKind::generation;
  if (task == "token-classification") return FormKind::tokens;
  if (task == "question-answering") return FormKind::question;
  if (task == "classification" || task == "prompt-classification") return FormKind::classification;
  return FormKind::none;
}

/** The model of a run's settings, or of an adapter. */
fs::path base_of(const fs::path& directory) {
  if (config::is_adapter(directory)) return config::find_base(directory);
  // A run's result lies right in it, as its checkpoints do.
  const fs::path settings_file = directory.parent_path() / "config.toml";
  if (!is_there(settings_file)) return {};
  config::Config settings;
  config::read_toml_file(settings, settings_file, config::Source::file);
  const auto name = settings.maybe_text("model_name_or_path");
  if (!name || name->empty()) return {};
  return config::locate_model(*name).value_or(fs::path());
}

void read_chat(ModelForm& form) {
  auto chats = chat::template_of_model(form.directory);
  // A base that is not here, or settings of another version, end the comparison alone.
  trouble_of([&] { form.base = base_of(form.directory); });
  const auto of_base = form.base.empty() ? std::nullopt : chat::template_of_model(form.base);
  if (!chats && config::is_adapter(form.directory)) chats = of_base;
  form.has_chat_template = chats.has_value();
  if (chats && !of_base && fs::path(chats->name).extension() == ".jinja")
    form.base_template = chats->name;
}

void read_config(ModelForm& form, const QString& name_or_path) {
  form.directory = config::find_model(name_or_path.toStdString());
  const HfConfig config = HfConfig::load(config::config_file_of(form.directory));
  form.family = to_text(config.model_type);
  const std::string_view task = kind_of_model(config).name;
  form.kind = form_of(task);
  for (const std::string& label : config.id2label)
    form.labels << to_text(label);
  form.is_multi_label = config.problem_type == "multi_label_classification";
  form.is_regression = config.problem_type == "regression";
  if (const auto pairs = config.json().find(std::string(kPairsKey));
      pairs != config.json().end() && pairs->is_boolean())
    form.takes_pairs = pairs->get<bool>();
  if (form.kind == FormKind::question) form.takes_pairs = true;
  if (form.kind == FormKind::generation) read_chat(form);
  if (form.kind == FormKind::none)
    form.trouble = ModelFormWords::tr(
                       "This model fills masked words (task %1). ferry predict has no answers for "
                       "it; ferry eval measures it.")
                       .arg(isolated(to_text(task)));
  else if (form.kind == FormKind::classification && form.labels.isEmpty())
    form.trouble = ModelFormWords::tr(
        "This model has no labels yet. Train it first: a base model answers nothing.");
}

}  // namespace

ModelForm read_model_form(const QString& name_or_path) {
  ModelForm form;
  if (const auto trouble = words_of_trouble([&] { read_config(form, name_or_path); })) {
    form.kind = FormKind::none;
    form.trouble = *trouble;
  }
  return form;
}

}  // namespace ferry::gui
