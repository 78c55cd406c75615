#include "gui/pages/new_run/new_run_page.h"

#include <QtWidgets>

#include "gui/models/process/ferry_command.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/settings/settings_file.h"
#include "gui/models/text.h"
#include "gui/pages/new_run/model_panel.h"
#include "gui/pages/new_run/preset_picker.h"
#include "gui/pages/new_run/review_panel.h"
#include "gui/pages/new_run/step_list.h"
#include "gui/widgets/forms/option_field.h"
#include "gui/widgets/forms/option_form.h"
#include "gui/widgets/look.h"
#include "src/config/paths.h"
#include "src/service/texts/given_data.h"
#include "src/service/train_check.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

constexpr int kSettleMs = 50, kSearchMs = 120;
/** Mnemonics of the window's menus and of the page's own buttons. */
constexpr const char* kReservedLetters = "favhbnqscx";
constexpr const char* kStoredTexts = "new_run/texts";

/** Settings that belong to the data and not to a method: a preset leaves them alone. */
const QStringList kDataKeys = {
    "dataset",        "eval_dataset",      "dataset_format", "dataset_encoding", "dataset_quoting",
    "dataset_header", "dataset_delimiter", "text_column",    "text_pair_column", "label_column"};

QMap<QString, QString> without_data(QMap<QString, QString> texts) {
  for (const QString& key : kDataKeys)
    texts.remove(key);
  return texts;
}

QString name_of(NewRunPage::Step step) {
  switch (step) {
    case NewRunPage::model_step:
      return NewRunPage::tr("Model");
    case NewRunPage::data_step:
      return NewRunPage::tr("Data");
    case NewRunPage::method_step:
      return NewRunPage::tr("Method");
    case NewRunPage::memory_step:
      return NewRunPage::tr("Memory");
    case NewRunPage::review_step:
      return NewRunPage::tr("Review");
    default:
      return {};
  }
}

QString purpose_of(NewRunPage::Step step) {
  switch (step) {
    case NewRunPage::model_step:
      return NewRunPage::tr("The model to begin with, and what it is to learn.");
    case NewRunPage::data_step:
      return NewRunPage::tr("The texts to learn from, and those that tell how well it goes.");
    case NewRunPage::method_step:
      return NewRunPage::tr("How long, how fast and in which portions it learns.");
    case NewRunPage::memory_step:
      return NewRunPage::tr(
          "How much of this machine it may take. None of it changes the result, "
          "unless its help says so.");
    case NewRunPage::review_step:
      return NewRunPage::tr("Where the result goes, and the last look before it starts.");
    default:
      return {};
  }
}

QString data_problem(const config::Config& config, const char* key) {
  const auto trouble = trouble_of([&] { check_data_exists(config, key); });
  return trouble ? message_of(*trouble).text : QString();
}

QScrollArea* scroll_area(QWidget* content) {
  auto* const area = new QScrollArea;
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setWidget(content);
  area->viewport()->setAutoFillBackground(false);
  content->setAutoFillBackground(false);
  return area;
}

}  // namespace

NewRunPage::NewRunPage(Shared& shared, QWidget* parent)
    : Page(shared, parent), finding_(this), listing_(this), checking_(this) {
  settle_timer_.setSingleShot(true);
  settle_timer_.setInterval(kSettleMs);
  search_timer_.setSingleShot(true);
  search_timer_.setInterval(kSearchMs);
  make_actions();
  auto* const layout = new QVBoxLayout(this);
  const int margin = fontMetrics().height();
  layout->setContentsMargins(margin, margin, margin, margin);
  layout->addWidget(make_top());
  layout->addWidget(make_body(), 1);
  layout->addWidget(make_bottom());
  connect_settings();
  connect_launcher();
  QMap<QString, QString> stored;
  const QVariantMap kept = shared.settings.value(kStoredTexts).toMap();
  for (auto it = kept.begin(); it != kept.end(); ++it)
    stored[it.key()] = it.value().toString();
  if (!stored.isEmpty()) settings_.load_texts(stored);
  update_mode();
  update_problems();
}

void NewRunPage::make_actions() {
  const auto add = [this](const char* name, const QString& text, const QKeySequence& keys) {
    auto* const action = new QAction(text, this);
    action->setObjectName(name);
    action->setShortcut(keys);
    addAction(action);
    return action;
  };
  start_action_ = add("action_start", tr("&Start the run"), QKeySequence(Qt::CTRL | Qt::Key_R));
  queue_action_ = add("action_queue", tr("Add to the &queue"), {});
  load_action_ = add("action_load", tr("&Open settings…"), QKeySequence::Open);
  save_action_ = add("action_save", tr("Save settings &as…"), QKeySequence::Save);
  find_action_ = add("action_find", tr("&Find a setting"), QKeySequence::Find);
  clear_action_ = add("action_clear", tr("&Clear all settings"), {});
  next_action_ = add("action_next", tr("&Next step"), QKeySequence(Qt::CTRL | Qt::Key_PageDown));
  back_action_ = add("action_back", tr("&Previous step"), QKeySequence(Qt::CTRL | Qt::Key_PageUp));
  const auto line = [this] {
    auto* const separator = new QAction(this);
    separator->setSeparator(true);
    return separator;
  };
  page_actions_ = {start_action_, queue_action_, line(),       load_action_, save_action_,
                   clear_action_, line(),        find_action_, back_action_, next_action_};
  connect(start_action_, &QAction::triggered, this, &NewRunPage::start);
  connect(queue_action_, &QAction::triggered, this, &NewRunPage::add_to_queue);
  connect(load_action_, &QAction::triggered, this, &NewRunPage::browse_load);
  connect(save_action_, &QAction::triggered, this, &NewRunPage::browse_save);
  connect(find_action_, &QAction::triggered, this, [this] {
    search_->setFocus(Qt::ShortcutFocusReason);
    search_->selectAll();
  });
  connect(clear_action_, &QAction::triggered, this, [this] {
    settings_.reset_all();
    picker_->set_current({});
    show_step(model_step);
  });
  connect(next_action_, &QAction::triggered, this,
          [this] { show_step(static_cast<Step>(std::min<int>(step() + 1, review_step))); });
  connect(back_action_, &QAction::triggered, this,
          [this] { show_step(static_cast<Step>(std::max<int>(step() - 1, model_step))); });
}

QWidget* NewRunPage::make_top() {
  auto* const top = new QWidget;
  picker_ = new PresetPicker(presets_);
  picker_->settings = [this] { return settings_.config(); };
  connect(picker_, &PresetPicker::chosen, this, &NewRunPage::choose_preset);
  connect(picker_, &PresetPicker::failed, this,
          [this](const QString& text) { show_message(text); });
  connect(picker_, &PresetPicker::said, &shared().navigator, &Navigator::said);
  search_ = new QLineEdit;
  search_->setObjectName("option_search");
  search_->setPlaceholderText(
      tr("Find a setting (%1)").arg(find_action_->shortcut().toString(QKeySequence::NativeText)));
  search_->setAccessibleName(tr("Find a setting"));
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(fontMetrics().averageCharWidth() * 26);
  connect(search_, &QLineEdit::textChanged, &search_timer_, qOverload<>(&QTimer::start));
  connect(&search_timer_, &QTimer::timeout, this, [this] { search(search_->text().trimmed()); });
  auto* const modes = new QButtonGroup(this);
  const auto add_mode = [&](const char* name, const QString& text, const QString& tip) {
    auto* const button = new QPushButton(text);
    button->setObjectName(name);
    button->setCheckable(true);
    button->setToolTip(tip);
    modes->addButton(button);
    return button;
  };
  basic_ = add_mode("basic_button", tr("&Basic"), tr("The settings that most runs need"));
  all_ = add_mode("all_button", tr("All settin&gs"), tr("Every setting of a training"));
  connect(all_, &QPushButton::toggled, this,
          [this](bool all) { shared().settings.set_shows_all_options(all); });
  connect(&shared().settings, &AppSettings::changed, this, &NewRunPage::update_mode);

  auto* const row = new QHBoxLayout(top);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(picker_, 3);
  row->addSpacing(fontMetrics().averageCharWidth());
  row->addWidget(search_, 2);
  row->addSpacing(fontMetrics().averageCharWidth());
  auto* const switches = new QHBoxLayout;
  switches->setSpacing(0);
  switches->addWidget(basic_);
  switches->addWidget(all_);
  row->addLayout(switches);
  return top;
}

QWidget* NewRunPage::make_body() {
  auto* const body = new QWidget;
  steps_ = new StepList;
  stack_ = new QStackedWidget;
  stack_->setObjectName("step_stack");
  for (int i = 0; i < n_steps; ++i) {
    steps_->add_step(name_of(static_cast<Step>(i)));
    auto* const content = new QWidget;
    new QVBoxLayout(content);
    areas_[static_cast<size_t>(i)] = scroll_area(content);
    stack_->addWidget(areas_[static_cast<size_t>(i)]);
  }
  preview_place_ = new QWidget;
  preview_place_->setObjectName("data_preview_place");
  plan_place_ = new QWidget;
  plan_place_->setObjectName("plan_view_place");
  for (QWidget* place : {preview_place_, plan_place_}) {
    auto* const inside = new QVBoxLayout(place);
    inside->setContentsMargins(0, 0, 0, 0);
    place->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Expanding);
    place->setParent(this);
    place->hide();
  }
  help_ = new QTextBrowser;
  help_->setObjectName("help_line");
  help_->setAccessibleName(tr("Help on the setting"));
  help_->setFrameShape(QFrame::NoFrame);
  help_->setFocusPolicy(Qt::NoFocus);
  help_->setFixedHeight(fontMetrics().lineSpacing() * 9 / 2);
  help_->setPlaceholderText(tr("Help on the setting that you are at is shown here."));
  help_->viewport()->setAutoFillBackground(false);
  connect(steps_, &QListWidget::currentRowChanged, this, [this](int row) {
    if (row >= 0) show_step(static_cast<Step>(row));
  });

  auto* const right = new QVBoxLayout;
  right->addWidget(stack_, 1);
  right->addWidget(help_);
  auto* const row = new QHBoxLayout(body);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(steps_);
  row->addLayout(right, 1);
  return body;
}

QWidget* NewRunPage::make_bottom() {
  auto* const bottom = new QWidget;
  auto* const message = new QFrame;
  message_ = message;
  message->setObjectName("start_message");
  message->setFrameShape(QFrame::StyledPanel);
  message_text_ = new ErrorLabel;
  message_text_->setObjectName("start_failed");
  message_command_ = new QPlainTextEdit;
  message_command_->setObjectName("start_failed_command");
  message_command_->setReadOnly(true);
  message_command_->setTabChangesFocus(true);
  message_command_->setAccessibleName(tr("Command that failed"));
  message_command_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  message_command_->setFixedHeight(message_command_->fontMetrics().lineSpacing() * 7 / 2);
  auto* const close = new QToolButton;
  close->setObjectName("close_message");
  close->setText(QStringLiteral("✕"));
  close->setAutoRaise(true);
  close->setAccessibleName(tr("Close the message"));
  connect(close, &QToolButton::clicked, this, [this] { show_message({}); });
  auto* const words = new QHBoxLayout;
  words->addWidget(message_text_, 1);
  words->addWidget(close, 0, Qt::AlignTop);
  auto* const inside = new QVBoxLayout(message);
  inside->addLayout(words);
  inside->addWidget(message_command_);
  message->hide();

  state_ = new QLabel;
  state_->setObjectName("state");
  state_->setWordWrap(true);
  state_->setTextFormat(Qt::RichText);
  state_->setTextInteractionFlags(Qt::TextBrowserInteraction);
  connect(state_, &QLabel::linkActivated, this, &NewRunPage::show_field);
  const auto add = [](const char* name, const QString& text, QAction* action) {
    auto* const button = new QPushButton(text);
    button->setObjectName(name);
    QObject::connect(button, &QPushButton::clicked, action, &QAction::trigger);
    return button;
  };
  back_ = add("back_button", tr("Bac&k"), back_action_);
  next_ = add("next_button", tr("&Next"), next_action_);
  queue_ = add("queue_button", tr("Add to &queue"), queue_action_);
  queue_->setToolTip(tr("It starts when the runs before it are over"));
  start_ = add("start_button", tr("&Start"), start_action_);
  QFont bold = start_->font();
  bold.setBold(true);
  start_->setFont(bold);
  auto* const row = new QHBoxLayout;
  row->addWidget(back_);
  row->addWidget(next_);
  row->addSpacing(fontMetrics().averageCharWidth() * 2);
  row->addWidget(state_, 1);
  row->addWidget(queue_);
  row->addWidget(start_);
  auto* const layout = new QVBoxLayout(bottom);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(message);
  layout->addLayout(row);
  return bottom;
}

NewRunPage::Step NewRunPage::step_of(const config::Option& option) {
  const std::string_view group = option.group;
  // A run that goes on begins with its checkpoint, as another one with its model.
  if (option.key == "resume_from_checkpoint" || option.key == "new_identity") return model_step;
  if (group == "Model") return model_step;
  if (group == "Data") return data_step;
  if (group == "Memory and placement" || group == "Threads") return memory_step;
  if (group == "Output") return review_step;
  return method_step;
}

void NewRunPage::make_step(Step step) {
  const auto at = static_cast<size_t>(step);
  if (forms_[at]) return;
  QWidget* const content = areas_[at]->widget();
  auto* const layout = qobject_cast<QVBoxLayout*>(content->layout());
  auto* const form = new OptionForm(settings_);
  forms_[at] = form;
  // Those of the plan and of the texts beside it, too.
  form->set_reserved_letters(QString::fromLatin1(kReservedLetters) +
                             QLatin1String(step == memory_step ? "kgmtpuo"
                                           : step == data_step ? "kgi"
                                                               : "kg"));
  connect(form, &OptionForm::focused, this, &NewRunPage::show_help);
  connect(form, &OptionForm::field_made, this, [this](OptionField* field) {
    if (field->key() == "task") take_found({.facts = facts_, .dataset = {}, .eval_dataset = {}});
  });
  QStringList keys;
  QSet<QString> groups;
  for (int row = 0; row < settings_.rowCount(); ++row)
    if (const config::Option& option = settings_.option(row); step_of(option) == step) {
      keys << to_text(option.key);
      groups << to_text(option.group);
    }
  form->set_shows_all(shared().settings.shows_all_options());
  form->set_keys(keys, groups.size() > 1 && step != model_step);

  layout->addWidget(heading_label(name_of(step)));
  auto* const purpose = quiet_label(purpose_of(step));
  purpose->setWordWrap(true);
  layout->addWidget(purpose);
  layout->addSpacing(fontMetrics().height() / 2);
  if (step == review_step) {
    review_ = new ReviewPanel(settings_);
    connect(review_, &ReviewPanel::problem_chosen, this, &NewRunPage::show_field);
  }
  layout->addWidget(form);
  layout->addSpacing(fontMetrics().height() / 2);
  if (step == model_step) {
    model_panel_ = new ModelPanel;
    connect(model_panel_, &ModelPanel::chosen, this, [this](const QString& name) {
      settings_.reset("config_name");
      settings_.set_text("model_name_or_path", name);
    });
    layout->addWidget(model_panel_, 1);
    model_panel_->show_facts(facts_, settings_.text(facts_.key));
    ask_models();
  } else if (step == data_step) {
    layout->addWidget(preview_place_, 1);
    preview_place_->show();
  } else if (step == memory_step) {
    layout->addWidget(plan_place_, 1);
    plan_place_->show();
  } else if (step == review_step) {
    layout->addWidget(review_, 1);
  } else {
    layout->addStretch(1);
  }
  set_tab_order(step);
  if (step == review_step) update_problems();
}

/** Fields first, then what is below them: they were made after the buttons at the bottom. */
void NewRunPage::set_tab_order(Step step) {
  OptionForm* const form = forms_[step];
  if (!form) return;
  form->set_tab_after(areas_[step]);
  QWidget* before = form->last_stop() ? form->last_stop() : areas_[step];
  for (QWidget* const stop : areas_[step]->widget()->findChildren<QWidget*>()) {
    if (form->isAncestorOf(stop) || !(stop->focusPolicy() & Qt::TabFocus)) continue;
    // The list of a combo box is a window of its own.
    if (stop->focusProxy() || stop->window() != window()) continue;
    setTabOrder(before, stop);
    before = stop;
  }
}

void NewRunPage::make_search() {
  auto* const content = new QWidget;
  auto* const layout = new QVBoxLayout(content);
  n_hits_ = heading_label({});
  n_hits_->setObjectName("n_hits");
  hits_ = new OptionForm(settings_, QStringLiteral("hit_"));
  hits_->set_reserved_letters(QString::fromLatin1(kReservedLetters) + 'k' + 'g');
  connect(hits_, &OptionForm::focused, this, &NewRunPage::show_help);
  layout->addWidget(n_hits_);
  layout->addWidget(hits_);
  layout->addStretch(1);
  hits_area_ = scroll_area(content);
  hits_area_->setObjectName("hits");
  stack_->addWidget(hits_area_);
  setTabOrder(areas_[review_step], hits_area_);
  hits_->set_tab_after(hits_area_);
}

void NewRunPage::search(const QString& words) {
  if (words.isEmpty()) {
    if (hits_area_) stack_->setCurrentIndex(steps_->currentRow());
    return;
  }
  const bool is_new = !hits_area_;
  if (is_new) make_search();
  hits_->set_search(words);
  if (is_new) {
    QStringList keys;
    for (int row = 0; row < settings_.rowCount(); ++row)
      keys << to_text(settings_.option(row).key);
    hits_->set_keys(keys, true);
  }
  n_hits_->setText(hits_->n_shown() == 0
                       ? tr("No setting has “%1” in its name or help.").arg(words)
                       : tr("Settings with “%1”: %2").arg(words).arg(hits_->n_shown()));
  stack_->setCurrentWidget(hits_area_);
  hits_area_->ensureVisible(0, 0);
}

NewRunPage::Step NewRunPage::step() const {
  return static_cast<Step>(std::max(steps_->currentRow(), 0));
}

void NewRunPage::show_step(Step step) {
  make_step(step);
  if (steps_->currentRow() != step) {
    const QSignalBlocker quiet(steps_);
    steps_->setCurrentRow(step);
  }
  if (!search_->text().isEmpty()) {
    const QSignalBlocker quiet(search_);
    search_->clear();
    search_timer_.stop();
  }
  stack_->setCurrentIndex(step);
  back_action_->setEnabled(step != model_step);
  next_action_->setEnabled(step != review_step);
  back_->setEnabled(step != model_step);
  next_->setEnabled(step != review_step);
  help_->clear();
  if (step == review_step) check_training();
}

void NewRunPage::show_field(const QString& key) {
  const int row = settings_.row_of(key);
  if (row < 0) return;
  const Step step = step_of(settings_.option(row));
  show_step(step);
  OptionField* const field = forms_[step]->field(key);
  if (!field) return;
  field->editor()->setFocus(Qt::OtherFocusReason);
  show_help(key);  // also where it had the focus
  // The form lays itself out first where the field is new.
  QTimer::singleShot(0, field, [area = areas_[step], field] { area->ensureWidgetVisible(field); });
}

void NewRunPage::connect_settings() {
  connect(&settings_, &SettingsModel::settings_changed, this, &NewRunPage::on_change);
  connect(&settle_timer_, &QTimer::timeout, this, &NewRunPage::settle);
  connect(&presets_, &PresetModel::loaded, this, [this] {
    if (!preset_name_.isEmpty()) choose_preset(std::exchange(preset_name_, {}));
  });
  connect(qApp, &QCoreApplication::aboutToQuit, this, &NewRunPage::store);
}

void NewRunPage::on_change() {
  // Until the next plan what did not fit still does not: Start stays "Start anyway".
  if (!fits_) verdict_ = tr("Planning anew…");
  check_problem_.clear();
  picker_->set_edited(without_data(settings_.texts()) != preset_texts_);
  update_problems();
  settle_timer_.start();
}

/** After the last of several changes. */
void NewRunPage::settle() {
  ask_found();
  emit draft_changed(settings_.valid_part());
  if (const auto& settled = settings_.settled()) emit settings_changed(*settled);
  if (step() == review_step && forms_[review_step]) check_training();
}

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
        return Found{.facts = read_model_facts(config),
                     .dataset = data_problem(config, "dataset"),
                     .eval_dataset = data_problem(config, "eval_dataset")};
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
  for (const char* key : {"learning_rate", "train_batch_size"})
    settings_.set_default(key, facts_.defaults.value(key));
  if (model_panel_) model_panel_->show_facts(facts_, settings_.text(facts_.key));
  OptionForm* const form = forms_[model_step];
  if (OptionField* const task = form ? form->made_field("task") : nullptr) {
    QStringList refused;
    if (!facts_.tasks.isEmpty())
      for (std::string_view choice : task->option().choices)
        if (!facts_.tasks.contains(to_text(choice))) refused << to_text(choice);
    task->set_refused_choices(refused, tr("A %1 model is not trained for it.").arg(facts_.family));
  }
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
  if (!settled) {
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
        const auto trouble = trouble_of([&] {
          service::check_patterns(config);
          service::check_training(config, [&](const std::string& note) {
            checked.notes << message_of(to_text(note)).text;
          });
        });
        if (trouble) checked.problem = message_of(*trouble).text;
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
    words =
        (is_wrong ? tr("⚠ To mend: %1") : tr("○ To do: %1")).arg(links.join(QStringLiteral(", ")));
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
  start_->setToolTip(is_starting_ ? tr("The run is starting.")
                     : reason.isEmpty()
                         ? tr("Start the run (%1)")
                               .arg(start_action_->shortcut().toString(QKeySequence::NativeText))
                         : reason);
  start_->setAccessibleDescription(start_->toolTip());
}

void NewRunPage::update_mode() {
  const bool all = shared().settings.shows_all_options();
  {
    const QSignalBlocker quiet(all_);
    (all ? all_ : basic_)->setChecked(true);
  }
  for (OptionForm* const form : forms_)
    if (form) form->set_shows_all(all);
}

void NewRunPage::show_help(const QString& key) {
  const config::Option& option = settings_.option(settings_.row_of(key));
  help_->setHtml(QStringLiteral("<b>%1.</b> %2")
                     .arg(label_of(option).toHtmlEscaped(), help_of(option).toHtmlEscaped()));
}

void NewRunPage::show_message(const QString& text, const QString& command) {
  message_text_->set_error(text);
  message_command_->setPlainText(command);
  message_command_->setVisible(!command.isEmpty());
  message_->setVisible(!text.isEmpty());
}

void NewRunPage::set_plan_verdict(bool fits, const QString& words) {
  fits_ = fits;
  verdict_ = words;
  update_start();
}

void NewRunPage::begin(const config::Config& settings) {
  preset_texts_.clear();
  picker_->set_current({});
  settings_.load(settings);
  show_message({});
  const auto& problems = settings_.problems();
  const int row = problems.empty() ? -1 : settings_.row_of(problems.front().key);
  show_step(row < 0 ? review_step : step_of(settings_.option(row)));
}

void NewRunPage::choose_preset(const QString& name) {
  if (!presets_.is_loaded()) {  // taken once they are read
    preset_name_ = name;
    return;
  }
  const config::Config* const settings = presets_.settings(presets_.row_of(name));
  if (!settings) return show_message(tr("The preset “%1” cannot be read.").arg(name));
  QMap<QString, QString> kept;
  for (const QString& key : kDataKeys)
    if (settings_.is_changed(key) && !settings->is_set(key.toStdString()))
      kept[key] = settings_.text(key);
  config::Config taken = *settings;
  settings_.load(taken);
  QMap<QString, QString> texts = settings_.texts();
  if (kept.contains("eval_dataset")) texts.remove("eval_fraction");  // one takes the other's place
  preset_texts_ = without_data(texts);
  texts.insert(kept);
  settings_.load_texts(texts);
  picker_->set_current(name);
  show_message({});
}

void NewRunPage::load_settings(const fs::path& file) {
  config::Config settings;
  if (const auto trouble = trouble_of([&] { settings = read_settings_file(file); }))
    return show_message(message_of(*trouble).text);
  begin(settings);
  emit shared().navigator.said(tr("Settings of %1").arg(path_text(file)));
}

void NewRunPage::save_settings(const fs::path& file) {
  const auto config = settings_.config();
  if (!config) return show_message(tr("Mend what is wrong first: a file holds valid settings."));
  const QString trouble = write_settings_file(file, *config);
  show_message(trouble);
  if (trouble.isEmpty()) emit shared().navigator.said(tr("Saved as %1").arg(path_text(file)));
}

void NewRunPage::browse_load() {
  auto* const dialog = new QFileDialog(this, tr("Open settings"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setNameFilter(tr("Settings (*.toml)"));
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this,
          [this](const QString& file) { load_settings(to_path(file)); });
  dialog->open();
}

void NewRunPage::browse_save() {
  auto* const dialog = new QFileDialog(this, tr("Save settings"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setNameFilter(tr("Settings (*.toml)"));
  dialog->setDefaultSuffix(QStringLiteral("toml"));
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  connect(dialog, &QFileDialog::fileSelected, this,
          [this](const QString& file) { save_settings(to_path(file)); });
  dialog->open();
}

void NewRunPage::add_to_queue() {
  if (const auto config = settings_.config()) emit queue_wanted(*config);
}

void NewRunPage::start() {
  const auto config = settings_.config();
  if (!config || is_starting_) return;
  show_message({});
  is_starting_ = true;
  is_launching_ = true;
  update_start();
  const auto trouble = trouble_of([&] {
    const std::string& from = config->text("resume_from_checkpoint");
    if (from.empty()) {
      starting_ = shared().launcher.start(*config, shared().settings.runs_directory());
      return;
    }
    const fs::path point = fs::absolute(from);
    starting_ = config::run_of_checkpoint(point);
    QStringList extra;
    for (const QString& argument : arguments_of(*config, config::kTrain))
      if (!argument.startsWith("--resume-from-checkpoint=") &&
          !argument.startsWith("--output-dir="))
        extra << argument;
    shared().launcher.resume(point, extra);
  });
  is_launching_ = false;
  if (!trouble) return;
  is_starting_ = false;
  show_message(*trouble);
  update_start();
}

void NewRunPage::connect_launcher() {
  connect(&shared().launcher, &Launcher::started, this, [this](const fs::path& run) {
    if (!is_starting_ || run != starting_) return;
    is_starting_ = false;
    update_start();
    emit shared().navigator.live_wanted(run);
  });
  connect(&shared().launcher, &Launcher::failed, this,
          [this](const fs::path& run, const QString& message, const QString& command) {
            // Without a program to start it fails before its directory is known.
            if (!is_starting_ || (!is_launching_ && run != starting_)) return;
            is_starting_ = false;
            show_message(tr("The run did not start. %1").arg(message), command);
            update_start();
          });
}

void NewRunPage::fill_place(QWidget* place, QWidget* content) {
  while (QLayoutItem* const old = place->layout()->takeAt(0)) {
    delete old->widget();
    delete old;
  }
  place->layout()->addWidget(content);
  set_tab_order(place == preview_place_ ? data_step : memory_step);
}
void NewRunPage::set_preview(QWidget* preview) {
  fill_place(preview_place_, preview);
}
void NewRunPage::set_plan_view(QWidget* plan) {
  fill_place(plan_place_, plan);
}

void NewRunPage::store() {
  QVariantMap kept;
  const QMap<QString, QString> texts = settings_.texts();
  for (auto it = texts.begin(); it != texts.end(); ++it)
    kept[it.key()] = it.value();
  shared().settings.set_value(kStoredTexts, kept);
}

void NewRunPage::set_active(bool active) {
  if (!active) {
    if (is_seen_) store();
    return;
  }
  // A model or data may have come since.
  found_for_.clear();
  settle_timer_.start();
  ask_models();
}

void NewRunPage::showEvent(QShowEvent* event) {
  Page::showEvent(event);
  if (is_seen_) return;
  is_seen_ = true;
  presets_.reload();
  show_step(step());
  settle_timer_.start();
}

QList<QAction*> NewRunPage::page_actions() {
  return page_actions_;
}

}  // namespace ferry::gui
