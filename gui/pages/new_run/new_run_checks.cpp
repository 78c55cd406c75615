// The looks at what was set: files, model, rules of a training; and what they mean for Start.

#include <QtWidgets>

#include "gui/models/inputs/data_columns.h"
#include "gui/models/process/ferry_command.h"
#include "gui/models/service_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/pages/new_run/model_panel.h"
#include "gui/pages/new_run/new_run_page.h"
#include "gui/pages/new_run/review_panel.h"
#include "gui/pages/new_run/step_list.h"
#include "gui/widgets/data/hub_box.h"
#include "gui/widgets/forms/option_field.h"
#include "gui/widgets/forms/option_form.h"
// Qt's keyword is a name in the planner.
#undef slots
#include "src/inputs/given_data.h"
#include "src/request/run_plan.h"
#include "src/service/train_check.h"

namespace ferry::gui {

namespace {

/** Why the data cannot be read; and where a hub may have them, by which name. */
QString data_problem(const config::Config& config, const char* key, QString& hub_name) {
  const auto trouble = trouble_of([&] { check_data_exists(config, key); });
  if (!trouble) return {};
  static const QRegularExpression advice(
      QStringLiteral(" - fetch it: ferry fetch --dataset (.+)$"));
  const QRegularExpressionMatch match = advice.match(*trouble);
  if (!match.hasMatch()) return message_of(*trouble).text;
  if (hub_name.isEmpty()) hub_name = match.captured(1);
  return message_of(trouble->left(match.capturedStart())).text;
}

}  // namespace

void NewRunPage::ask_found() {
  const config::Config config = settings_.valid_part();
  QString question;
  for (const char* key : {"model_name_or_path", "config_name", "tokenizer_name", "task", "dataset",
                          "eval_dataset", "resume_from_checkpoint"})
    question += settings_.text(key) + '\n';
  if (question == found_for_) return;
  found_for_ = question;
  finding_.ask(
      [config] {
        Found found{.facts = read_model_facts(config),
                    .dataset = {},
                    .eval_dataset = {},
                    .columns = data_columns(config.text("dataset")),
                    .hub_data = {}};
        found.dataset = data_problem(config, "dataset", found.hub_data);
        found.eval_dataset = data_problem(config, "eval_dataset", found.hub_data);
        return found;
      },
      [this](const Found& found, const QString&) {
        settings_.set_found_problem("dataset", found.dataset);
        settings_.set_found_problem("eval_dataset", found.eval_dataset);
        take_found(found);
      });
}

void NewRunPage::take_found(const Found& found) {
  facts_ = found.facts;
  for (const char* key : {"model_name_or_path", "config_name", "resume_from_checkpoint"})
    settings_.set_found_problem(key, facts_.key == key ? facts_.problem : QString());
  settings_.set_found_problem("task", facts_.task_problem);
  show_defaults();
  if (model_panel_) model_panel_->show_facts(facts_, settings_.text(facts_.key));
  columns_ = found.columns;
  wanted_data_ = found.hub_data;
  if (hub_data_) hub_data_->offer(wanted_data_);
  suggest_columns();
  OptionForm* const form = forms_[model_step];
  if (OptionField* const task = form ? form->made_field("task") : nullptr) {
    QStringList refused;
    if (!facts_.tasks.isEmpty())
      for (std::string_view choice : task->option().choices)
        if (!facts_.tasks.contains(to_text(choice))) refused << to_text(choice);
    task->set_refused_choices(refused,
                              tr("A %1 model is not trained for it.").arg(isolated(facts_.family)));
  }
}

/** Values in force where nothing is set: the model's, and those of adapters. */
void NewRunPage::show_defaults() {
  for (const char* key : {"learning_rate", "train_batch_size"})
    settings_.set_default(key, facts_.defaults.value(key));
  const QString tuning = settings_.text("tuning");
  if (!tuning.isEmpty() && tuning != QLatin1String("full"))
    settings_.set_default("learning_rate", to_text(kAdapterRate));
}

void NewRunPage::suggest_columns() {
  if (OptionForm* const form = forms_[data_step])
    for (const char* key : {"text_column", "text_pair_column", "label_column"})
      if (OptionField* const field = form->made_field(key)) field->set_suggestions(columns_);
}

void NewRunPage::ask_models() {
  if (!model_panel_) return;
  listing_.ask(
      [] { return models_here(); },
      [this](const std::vector<ModelHere>& models, const QString&) {
        model_panel_->show_models(models);
        model_panel_->show_facts(facts_, settings_.text(facts_.key));
        OptionField* const field = forms_[model_step]->made_field("model_name_or_path");
        if (!field || !field->line()) return;
        QStringList names;
        for (const ModelHere& model : models)
          names << model.name;
        for (int row = 0; row < presets_.rowCount(); ++row)
          names << presets_.index(row).data(PresetModel::model_role).toString();
        names.removeDuplicates();
        names.removeAll(QString());
        auto* const completer = new QCompleter(names, field->line());
        completer->setCaseSensitivity(Qt::CaseInsensitive);
        completer->setFilterMode(Qt::MatchContains);
        connect(completer, qOverload<const QString&>(&QCompleter::activated), this,
                [this](const QString& name) { settings_.set_text("model_name_or_path", name); });
        field->line()->setCompleter(completer);
      });
}

void NewRunPage::check_training() {
  if (!review_) return;
  const auto settled = settings_.settled();
  if (!settled || !settings_.problems().empty()) {
    checking_.forget();
    return review_->show_check(ReviewPanel::Check::none);
  }
  review_->show_check(ReviewPanel::Check::running);
  struct Checked {
    QString problem;
    QStringList notes;
  };
  checking_.ask(
      [config = *settled] {
        Checked checked;
        const auto trouble = words_of_trouble([&] {
          service::check_patterns(config);
          service::check_training(config, [&](const std::string& note) {
            checked.notes << message_of(service_words(to_text(note))).text;
          });
        });
        if (trouble) checked.problem = *trouble;
        return checked;
      },
      [this](const Checked& checked, const QString&) {
        check_problem_ = checked.problem;
        update_start();
        if (checked.problem.isEmpty())
          review_->show_check(ReviewPanel::Check::passed, checked.notes.join('\n'));
        else
          review_->show_check(ReviewPanel::Check::failed, checked.problem);
      });
}

void NewRunPage::update_problems() {
  std::array<int, n_steps> n_problems = {}, n_missing = {};
  for (const SettingsModel::Problem& problem : settings_.problems()) {
    const int row = settings_.row_of(problem.key);
    const Step step = row < 0 ? review_step : step_of(settings_.option(row));
    ++n_problems[step];
    n_missing[step] += settings_.is_missing(problem.key);
  }
  for (int i = 0; i < n_steps; ++i)
    steps_->set_problems(i, n_problems[static_cast<size_t>(i)], n_missing[static_cast<size_t>(i)]);
  if (review_) {
    review_->show_problems(settings_.problems());
    review_->show_settings();
    const auto config = settings_.config();
    const auto ferry = find_ferry();
    const QString program = ferry ? path_text(*ferry) : QStringLiteral("ferry");
    review_->show_command(
        config ? shell_text(program, QStringList{"train"} + arguments_of(*config, config::kTrain))
               : QString());
  }
  update_start();
}

void NewRunPage::update_start() {
  const auto& problems = settings_.problems();
  const bool can_start = problems.empty() && !is_starting_;
  start_->setText(is_starting_ ? tr("Starting…") : fits_ ? tr("&Start") : tr("&Start anyway"));
  start_->setEnabled(can_start);
  start_action_->setEnabled(can_start);
  queue_->setEnabled(problems.empty());
  queue_action_->setEnabled(problems.empty());
  QStringList links;
  constexpr int kMost = 3;
  for (const SettingsModel::Problem& problem : problems) {
    const int row = settings_.row_of(problem.key);
    if (links.size() == kMost) {
      links << QStringLiteral("…");
      break;
    }
    links << (row < 0 ? problem.text.toHtmlEscaped()
                      : QStringLiteral("<a href=\"%1\">%2</a>")
                            .arg(problem.key, label_of(settings_.option(row)).toHtmlEscaped()));
  }
  const bool is_wrong = std::any_of(
      problems.begin(), problems.end(),
      [this](const SettingsModel::Problem& problem) { return !settings_.is_missing(problem.key); });
  QString words;
  if (!links.isEmpty())
    words = (is_wrong ? tr("⚠ To fix: %1") : tr("○ To do: %1")).arg(listed(links));
  else if (const QString doing = shared().launcher.doing(starting_);
           is_starting_ && !doing.isEmpty())
    words = tr("The run is starting: %1").arg(doing);
  else if (is_starting_)
    words = tr("The run is starting…");
  else if (!check_problem_.isEmpty())
    words = tr("⚠ It would not start as it is: see Review.");
  else if (!verdict_.isEmpty())
    words = (fits_ ? QString() : QStringLiteral("⚠ ")) + verdict_.toHtmlEscaped();
  else
    words = tr("All settings are in order.");
  state_->setText(words);
  const QString reason = problems.empty() ? QString() : problems.front().text;
  start_->setToolTip(
      is_starting_ ? tr("The run is starting.")
      : reason.isEmpty()
          ? tr("Start the run (%1)")
                .arg(isolated(start_action_->shortcut().toString(QKeySequence::NativeText)))
          : reason);
  start_->setAccessibleDescription(start_->toolTip());
}

void NewRunPage::set_plan_verdict(bool fits, const QString& words) {
  fits_ = fits;
  verdict_ = words;
  update_start();
}

}  // namespace ferry::gui
