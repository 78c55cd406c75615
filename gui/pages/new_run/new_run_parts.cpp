// The parts of the page: what stands above, beside and below the steps, and the steps themselves.

#include <QtWidgets>

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/pages/new_run/model_panel.h"
#include "gui/pages/new_run/new_run_page.h"
#include "gui/pages/new_run/preset_picker.h"
#include "gui/pages/new_run/review_panel.h"
#include "gui/pages/new_run/step_list.h"
#include "gui/widgets/aside.h"
#include "gui/widgets/data/hub_box.h"
#include "gui/widgets/forms/option_field.h"
#include "gui/widgets/forms/option_form.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

/** Mnemonics of the window's menus and of the page's own buttons. */
constexpr const char* kReservedLetters = "favhbnqscx";

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

QScrollArea* scroll_area(QWidget* content) {
  auto* const area = new QScrollArea;
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setFocusPolicy(Qt::ClickFocus);  // the tab key passes: it would show no focus
  area->setWidget(content);
  area->viewport()->setAutoFillBackground(false);
  content->setAutoFillBackground(false);
  return area;
}

}  // namespace

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
  other_action_ = add("action_other_draft", tr("Take the &draft of the other window"), {});
  next_action_ = add("action_next", tr("&Next step"), QKeySequence(Qt::CTRL | Qt::Key_PageDown));
  back_action_ = add("action_back", tr("&Previous step"), QKeySequence(Qt::CTRL | Qt::Key_PageUp));
  const auto line = [this] {
    auto* const separator = new QAction(this);
    separator->setSeparator(true);
    return separator;
  };
  page_actions_ = {start_action_, queue_action_, line(),        load_action_,
                   save_action_,  clear_action_, other_action_, line(),
                   find_action_,  back_action_,  next_action_};
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
  other_action_->setEnabled(false);
  connect(other_action_, &QAction::triggered, this, &NewRunPage::take_other_draft);
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
      tr("Find a setting (%1)")
          .arg(isolated(find_action_->shortcut().toString(QKeySequence::NativeText))));
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
  help_->setFocusPolicy(Qt::NoFocus);
  help_->setPlaceholderText(tr("Help on the setting that you are at is shown here."));
  connect(steps_, &QListWidget::currentRowChanged, this, [this](int row) {
    if (row >= 0) show_step(static_cast<Step>(row));
  });

  auto* const row = new QHBoxLayout(body);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(steps_);
  row->addWidget(new Aside(stack_, help_), 1);
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
  show_code(*message_command_);
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

  state_ = new TextLabel;
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
  start_->setFont(bold_font(start_->font()));
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

void NewRunPage::make_step(Step step) {
  const auto at = static_cast<size_t>(step);
  if (forms_[at]) return;
  QWidget* const content = areas_[at]->widget();
  auto* const layout = qobject_cast<QVBoxLayout*>(content->layout());
  auto* const form = new OptionForm(settings_);
  forms_[at] = form;
  // Those of the plan and of the texts beside it, too.
  form->set_reserved_letters(QString::fromLatin1(kReservedLetters) +
                             QLatin1String(step == memory_step ? "kgmtpuoz"
                                           : step == data_step ? "kgi"
                                                               : "kg"));
  connect(form, &OptionForm::focused, this, &NewRunPage::show_help);
  connect(form, &OptionForm::field_made, this, [this](OptionField* field) {
    if (field->key() == "task")
      take_found({.facts = facts_,
                  .dataset = {},
                  .eval_dataset = {},
                  .columns = columns_,
                  .hub_data = wanted_data_});
    if (field->key().endsWith(QLatin1String("_column"))) suggest_columns();
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
    connect(model_panel_, &ModelPanel::fetched, this, &NewRunPage::ask_again);
    layout->addWidget(model_panel_, 1);
    model_panel_->show_facts(facts_, settings_.text(facts_.key));
    ask_models();
  } else if (step == data_step) {
    hub_data_ = new HubBox(HubDownload::Kind::dataset);
    hub_data_->setObjectName("hub_data");
    connect(&hub_data_->download(), &HubDownload::fetched, this, &NewRunPage::ask_again);
    layout->addWidget(hub_data_);
    hub_data_->offer(wanted_data_);
    layout->addWidget(preview_place_, 1);
    preview_place_->show();
  } else if (step == memory_step) {
    layout->addWidget(heading_label(tr("Plan")));
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

}  // namespace ferry::gui
