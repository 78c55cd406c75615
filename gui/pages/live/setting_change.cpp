#include "gui/pages/live/setting_change.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "gui/models/process/ferry_command.h"
#include "gui/models/runs/run_progress.h"
#include "gui/models/service_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/widgets/charts/curve_style.h"
#include "gui/widgets/look.h"
#include "src/config/options/value.h"

namespace ferry::gui {

namespace {

/** The settings that may change in the middle of a run (src/train/control/control.cpp). */
constexpr const char* kKeys[] = {"learning_rate", "weight_decay", "max_grad_norm", "eval_steps"};
const config::Origin kHere{config::Source::command_line, "the app"};

}  // namespace

SettingChange::SettingChange(QWidget* parent) : QWidget(parent) {
  auto* const label = new TextLabel(tr("Chan&ge"));
  keys_ = new QComboBox;
  keys_->setObjectName("change_key");
  keys_->setAccessibleName(tr("Setting to change"));
  keys_->setFocusPolicy(Qt::StrongFocus);
  for (const char* key : kKeys)
    keys_->addItem(label_of(*config::find_option(key).option), QString::fromLatin1(key));
  label->setBuddy(keys_);
  auto* const to = new TextLabel(tr("to", "change a setting to a value"));
  value_ = new QLineEdit;
  value_->setObjectName("change_value");
  value_->setAccessibleName(tr("New value"));
  value_->setMaximumWidth(14 * fontMetrics().averageCharWidth());
  button_ = new QPushButton(tr("A&pply"));
  button_->setObjectName("change_button");
  trouble_ = new ErrorLabel;
  trouble_->setObjectName("change_trouble");
  auto* const row = new QHBoxLayout;
  row->addWidget(label);
  row->addWidget(keys_);
  row->addWidget(to);
  row->addWidget(value_);
  row->addWidget(button_);
  // Below its field: an error that comes moves nothing beside it.
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins({});
  column->addLayout(row);
  column->addWidget(trouble_);
  connect(keys_, &QComboBox::currentIndexChanged, this, &SettingChange::show_value);
  connect(value_, &QLineEdit::textEdited, this, &SettingChange::check);
  connect(value_, &QLineEdit::returnPressed, this, &SettingChange::change);
  connect(button_, &QPushButton::clicked, this, &SettingChange::change);
  check();
}

std::string SettingChange::key() const {
  return keys_->currentData().toString().toStdString();
}

bool SettingChange::show_run(const std::filesystem::path& run) {
  settings_ = config::Config();
  changed_.clear();
  // A run without its settings can be steered all the same.
  const auto trouble = trouble_of(
      [&] { config::read_toml_file(settings_, run / "config.toml", config::Source::file); });
  show_value();
  return !trouble;
}

void SettingChange::show_state(const service::RunFacts& facts,
                               const nlohmann::ordered_json& record) {
  const service::AllowedActions allowed = service::allowed_actions(facts);
  is_allowed_ = allowed.allows(service::RunAction::change_settings);
  why_not_ = service_words(to_text(allowed.why_not(service::RunAction::change_settings)));
  setVisible(facts.trainer != service::Trainer::none);
  auto changed = decltype(changed_)();
  if (record.is_object() && record.contains("changes") && record["changes"].is_array())
    for (const auto& change : record["changes"])
      if (change.is_object() && change.value("key", nlohmann::ordered_json()).is_string() &&
          change.value("value", nlohmann::ordered_json()).is_string())
        changed[change["key"].get<std::string>()] = change["value"].get<std::string>();
  const bool is_news = changed != changed_;
  changed_ = std::move(changed);
  if (is_news && !value_->isModified()) show_value();
  check();
}

void SettingChange::show_value() {
  const auto changed = changed_.find(key());
  const config::Option& option = *config::find_option(key()).option;
  const QString now =
      to_text(changed != changed_.end() ? changed->second
                                        : flag_value(option, settings_.value(option.key)));
  // A number that is none to people is shown as its word until another is typed.
  const QString word = special_word(option, now);
  value_->setText(word.isEmpty() ? now : QString());
  value_->setPlaceholderText(word);
  value_->setModified(false);
  value_->setToolTip(help_of(option));
  check();
}

void SettingChange::check() {
  QString trouble;
  if (value_->isModified())
    trouble = words_of_trouble([&] {
                config::Config checked = settings_;
                checked.set(key(), value_->text().trimmed().toStdString(), kHere);
              }).value_or(QString());
  trouble_->set_error(trouble);
  value_->setEnabled(is_allowed_);
  keys_->setEnabled(is_allowed_);
  button_->setEnabled(is_allowed_ && trouble.isEmpty() && value_->isModified());
  button_->setToolTip(is_allowed_ ? tr("The run uses the value from its next step on.")
                                  : tr("Not now: %1.").arg(why_not_));
}

void SettingChange::change() {
  if (!button_->isEnabled()) return;
  const QString value = value_->text().trimmed();
  value_->setModified(false);
  check();
  emit wanted(keys_->currentData().toString(), value);
}

}  // namespace ferry::gui
