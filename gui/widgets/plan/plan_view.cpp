#include "gui/widgets/plan/plan_view.h"

#include <QtWidgets>
#include <algorithm>

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "gui/widgets/charts/stacked_bars.h"
#include "gui/widgets/forms/flow_layout.h"
#include "gui/widgets/look.h"
#include "gui/widgets/plan/drive_fields.h"
#include "gui/widgets/plan/verdict_icon.h"
#include "src/base/bytes.h"
#include "src/base/process/host_memory.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry::gui {

using service::PlanAnswer;
using service::Verdict;

namespace {

constexpr int64_t kNotch_bytes = 256 * kMiB;
constexpr int kAutoLength = 2;  ///< the spin box's value for auto, below the least length

QLabel* words() {
  auto* label = new TextLabel;
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  return label;
}

}  // namespace

PlanView::PlanView(QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  const int gap = style()->pixelMetric(QStyle::PM_LayoutVerticalSpacing);
  column->setSpacing(std::max(gap, 6) * 2);
  make_controls();
  column->addLayout(controls_);

  auto* frame = new QFrame;
  verdict_ = frame;
  frame->setObjectName("plan_verdict");
  frame->setFrameShape(QFrame::StyledPanel);
  frame->setBackgroundRole(QPalette::Base);
  frame->setAutoFillBackground(true);
  auto* row = new QHBoxLayout(frame);
  icon_ = new TextLabel;
  icon_->setAlignment(Qt::AlignTop);
  row->addWidget(icon_, 0, Qt::AlignTop);
  auto* said = new QVBoxLayout;
  auto* first = new QHBoxLayout;
  word_ = heading_label({});
  word_->setObjectName("plan_verdict_word");
  busy_ = new TextLabel(tr("planning\u2026"));
  busy_->hide();
  first->addWidget(word_);
  first->addWidget(busy_);
  first->addStretch();
  said->addLayout(first);
  why_ = words();
  why_->setObjectName("plan_why");
  said->addWidget(why_);
  help_ = words();
  help_->setObjectName("plan_help");
  said->addWidget(help_);
  changes_ = new QWidget;
  changes_->setLayout(new FlowLayout);
  changes_->layout()->setSpacing(6);
  said->addWidget(changes_);
  row->addLayout(said, 1);
  column->addWidget(frame);

  plan_ = new QWidget;
  auto* below = new QVBoxLayout(plan_);
  below->setContentsMargins(0, 0, 0, 0);
  below->setSpacing(column->spacing() / 2);
  below->addWidget(heading_label(tr("Memory")));
  memory_ = new StackedBars;
  memory_->setObjectName("plan_memory");
  below->addWidget(memory_);
  read_out_ = new TextLabel;
  read_out_->setObjectName("plan_read_out");
  read_out_->setForegroundRole(QPalette::PlaceholderText);
  below->addWidget(read_out_);
  below->addSpacing(column->spacing() / 2);
  time_title_ = heading_label(tr("A step"));
  below->addWidget(time_title_);
  time_ = new StackedBars;
  time_->setObjectName("plan_time");
  time_->set_legend(false);
  below->addWidget(time_);
  figures_ = new QGridLayout;
  figures_->setColumnStretch(1, 1);
  below->addLayout(figures_);
  notes_ = words();
  notes_->setForegroundRole(QPalette::PlaceholderText);
  below->addWidget(notes_);
  assumes_ = new QToolButton;
  assumes_->setObjectName("plan_assumes");
  assumes_->setCheckable(true);
  assumes_->setAutoRaise(true);
  assumes_->setArrowType(Qt::RightArrow);
  assumes_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  below->addWidget(assumes_);
  assumptions_ = words();
  assumptions_->setForegroundRole(QPalette::PlaceholderText);
  assumptions_->hide();
  below->addWidget(assumptions_);
  connect(assumes_, &QToolButton::toggled, this, [this](bool shows) {
    assumes_->setArrowType(shows ? Qt::DownArrow : Qt::RightArrow);
    assumptions_->setVisible(shows);
  });
  column->addWidget(plan_);
  column->addStretch();
  plan_->hide();
  verdict_->hide();

  const QString hint = tr("Point at a part of a bar, or use the arrow keys, to read it out.");
  read_out_->setText(hint);
  for (StackedBars* bars : {memory_, time_})
    connect(bars, &StackedBars::read_out_changed, this, [this, hint] {
      const QString memory = memory_->read_out(), time = time_->read_out();
      read_out_->setText(!memory.isEmpty() ? memory : !time.isEmpty() ? time : hint);
    });
  slow_ = new QTimer(this);
  slow_->setSingleShot(true);
  slow_->setInterval(250);
  connect(slow_, &QTimer::timeout, this, [this] {
    verdict_->show();
    if (word_->text().isEmpty()) word_->setText(tr("Reading"));
    busy_->show();
  });
  connect(&thread_, &PlanThread::answered, this, &PlanView::show_outcome);
}

void PlanView::make_controls() {
  controls_ = new QGridLayout;
  controls_->setColumnStretch(1, 1);
  controls_->setHorizontalSpacing(12);

  card_ = new QComboBox;
  card_->setObjectName("plan_card");
  card_->addItem(tr("This machine"), QStringLiteral("auto"));
  for (const std::string& name : list_machine_presets())
    card_->addItem(to_text(name), to_text(name));
  card_->setAccessibleName(tr("Machine that is planned for"));
  card_->setToolTip(tr("Plan for this machine, or for a card that is not here."));
  give_way(card_);
  connect(card_, &QComboBox::activated, this, [this] {
    emit change_wanted(QStringLiteral("machine"), card_->currentData().toString());
  });
  const auto spin = [](const QString& name, const QString& words, int least) {
    auto* box = new QSpinBox;
    box->setObjectName(name);
    box->setAccessibleName(words);
    box->setRange(least, 1 << 20);
    box->setKeyboardTracking(false);
    box->setFocusPolicy(Qt::StrongFocus);
    return box;
  };
  batch_ = spin("plan_batch", tr("Batch size: samples of a step"), 1);
  connect(batch_, &QSpinBox::valueChanged, this, [this](int value) {
    emit change_wanted(QStringLiteral("train_batch_size"), QString::number(value));
  });
  length_ = spin("plan_length", tr("Longest text, in tokens"), kAutoLength);
  length_->setSpecialValueText(tr("auto"));
  length_->setSingleStep(64);
  connect(length_, &QSpinBox::valueChanged, this, [this](int value) {
    emit change_wanted(QStringLiteral("max_length"),
                       value == kAutoLength ? QStringLiteral("auto") : QString::number(value));
  });
  const auto label = [](const QString& text, QWidget* buddy) {
    auto* made = new TextLabel(text);
    made->setBuddy(buddy);
    return made;
  };
  auto* first = new QHBoxLayout;
  first->addWidget(card_);
  first->addStretch();
  first->addWidget(label(tr("Batch si&ze"), batch_));
  first->addWidget(batch_);
  first->addSpacing(12);
  first->addWidget(label(tr("Longest &text"), length_));
  first->addWidget(length_);
  controls_->addWidget(label(tr("&Plan for"), card_), 0, 0);
  controls_->addLayout(first, 0, 1, 1, 3);
  gpu_ = make_budget("gpu_memory", tr("GP&U memory"), tr("GPU memory that Ferry may take"), 1);
  host_ = make_budget("host_memory", tr("H&ost memory"), tr("Host memory that Ferry may take"), 2);
  make_drive_fields(3);
  field_error_ = new ErrorLabel;
  field_error_->setObjectName("plan_field_error");
  controls_->addWidget(field_error_, 4, 1, 1, 3);

  what_if_ = new QWidget;
  what_if_->setObjectName("plan_what_if");
  auto* tried = new QHBoxLayout(what_if_);
  tried->setContentsMargins(0, 0, 0, 0);
  tried->addWidget(note_label(tr("A plan for another machine: what you change here is tried in "
                                 "this plan alone, and the run keeps its settings.")),
                   1);
  take_over_ = new QPushButton(tr("Use in the run"));
  take_over_->setObjectName("plan_take_over");
  take_over_->setAccessibleName(tr("Use in the run"));
  take_over_->setToolTip(tr("Makes what was tried here settings of the run"));
  tried->addWidget(take_over_, 0, Qt::AlignTop);
  controls_->addWidget(what_if_, 5, 1, 1, 3);
  connect(take_over_, &QPushButton::clicked, this, &PlanView::take_over_wanted);
  what_if_->hide();
}

void PlanView::make_drive_fields(int row) {
  drive_ = new DriveFields;
  auto* label = new TextLabel(tr("NVMe drive"));
  label->setBuddy(drive_->path_field());
  controls_->addWidget(label, row, 0);
  controls_->addWidget(drive_, row, 1, 1, 3);
  connect(drive_, &DriveFields::change_wanted, this, &PlanView::change_wanted);
  connect(drive_, &DriveFields::trouble_changed, this, [this](const QString& words) {
    show_trouble(words.isEmpty() ? std::nullopt : std::optional(words));
  });
}

PlanView::Budget PlanView::make_budget(const QString& key,
                                       const QString& label,
                                       const QString& name,
                                       int row) {
  Budget budget = {.key = key};
  budget.slider = new QSlider(Qt::Horizontal);
  budget.slider->setObjectName("plan_" + key + "_slider");
  budget.slider->setAccessibleName(name);
  budget.slider->setFocusPolicy(Qt::StrongFocus);
  budget.slider->setRange(1, 64);
  budget.slider->setPageStep(4);
  budget.field = new QLineEdit;
  budget.field->setObjectName("plan_" + key);
  budget.field->setAccessibleName(name);
  budget.field->setPlaceholderText(tr("auto"));
  budget.field->setMaximumWidth(19 * budget.field->fontMetrics().averageCharWidth());
  budget.automatic = new QToolButton;
  budget.automatic->setObjectName("plan_" + key + "_auto");
  budget.automatic->setText(tr("auto"));
  budget.automatic->setAccessibleName(tr("%1: as much as is free").arg(name));
  budget.automatic->setToolTip(tr("As much as is free, but a margin"));
  auto* text = new TextLabel(label);
  text->setBuddy(budget.field);
  controls_->addWidget(text, row, 0);
  controls_->addWidget(budget.slider, row, 1);
  controls_->addWidget(budget.field, row, 2);
  controls_->addWidget(budget.automatic, row, 3);
  connect(budget.slider, &QSlider::valueChanged, this, [this, key](int notches) {
    emit change_wanted(key, PlanPicture::setting_of(notches * kNotch_bytes));
  });
  connect(budget.field, &QLineEdit::editingFinished, this, [this, key] {
    const Budget& which = key == gpu_.key ? gpu_ : host_;
    if (which.field->isModified()) wish_budget(which, which.field->text().trimmed());
  });
  connect(budget.automatic, &QToolButton::clicked, this,
          [this, key] { emit change_wanted(key, QStringLiteral("auto")); });
  return budget;
}

void PlanView::wish_budget(const Budget& budget, const QString& text) {
  budget.field->setModified(false);
  const QString wished = text.isEmpty() ? QStringLiteral("auto") : text;
  config::Config trial;
  const auto trouble = words_of_trouble([&] {
    trial.set(budget.key.toStdString(), wished.toStdString(),
              {config::Source::command_line, "the memory plan"});
  });
  show_trouble(trouble);
  if (!trouble) emit change_wanted(budget.key, wished);
}

void PlanView::show_trouble(const std::optional<QString>& words) {
  field_error_->set_error(words.value_or(QString()));
}

void PlanView::show_missing(const QString& why) {
  thread_.forget();
  slow_->stop();
  busy_->hide();
  outcome_.reset();
  picture_ = {};
  plan_->hide();
  show_changes();
  icon_->clear();
  word_->setText(tr("No plan yet"));
  why_->setText(why);
  help_->hide();
  verdict_->setAccessibleDescription(why);
  verdict_->show();
  for (const Budget& budget : {gpu_, host_})
    budget.slider->setEnabled(false);
  // They would show numbers of no run.
  for (QSpinBox* box : {batch_, length_})
    box->setEnabled(false);
}

void PlanView::show_what_if(bool is_elsewhere, bool has_changes) {
  what_if_->setVisible(is_elsewhere);
  take_over_->setEnabled(has_changes);
}

void PlanView::set_settings(const config::Config& settings) {
  settings_ = settings;
  show_controls();
  field_error_->set_error({});
  slow_->start();
  thread_.ask(settings);
}

const PlanAnswer* PlanView::answer() const {
  return outcome_ && outcome_->answer ? &*outcome_->answer : nullptr;
}

void PlanView::show_controls() {
  const QSignalBlocker blockers[] = {QSignalBlocker(card_), QSignalBlocker(batch_),
                                     QSignalBlocker(length_)};
  const QString machine = to_text(settings_->maybe_text("machine").value_or("auto"));
  int at = card_->findData(machine);
  if (at < 0) {  // a profile's file
    card_->addItem(machine, machine);
    at = card_->count() - 1;
  }
  card_->setCurrentIndex(at);
  const PlanAnswer* const known = answer();
  const bool is_given = settings_->is_set("train_batch_size");
  batch_->setValue(static_cast<int>(
      (is_given || !known ? *settings_ : known->config).integer("train_batch_size")));
  length_->setValue(static_cast<int>(settings_->maybe_integer("max_length").value_or(kAutoLength)));
  drive_->show_settings(*settings_);
  for (const Budget& budget : {gpu_, host_}) {
    const auto given = settings_->maybe_integer(budget.key.toStdString());
    if (!budget.field->hasFocus() || !budget.field->isModified())
      budget.field->setText(given ? PlanPicture::setting_of(*given) : QString());
    budget.automatic->setEnabled(given.has_value());
    if (!given || budget.slider->isSliderDown()) continue;
    const QSignalBlocker blocker(budget.slider);
    budget.slider->setMaximum(
        std::max(budget.slider->maximum(), static_cast<int>(*given / kNotch_bytes)));
    budget.slider->setValue(static_cast<int>(*given / kNotch_bytes));
  }
}

void PlanView::show_budget(const Budget& budget, int64_t now_bytes, int64_t most_bytes) {
  const auto given = settings_->maybe_integer(budget.key.toStdString());
  const QSignalBlocker blocker(budget.slider);
  const int64_t most = std::max({most_bytes, now_bytes, given.value_or(0), kNotch_bytes});
  if (!budget.slider->isSliderDown()) {
    budget.slider->setRange(1, static_cast<int>((most + kNotch_bytes - 1) / kNotch_bytes));
    budget.slider->setValue(static_cast<int>(given.value_or(now_bytes) / kNotch_bytes));
  }
  budget.field->setPlaceholderText(
      tr("auto: %1").arg(PlanPicture::gib(static_cast<double>(now_bytes))));
  budget.slider->setToolTip(
      tr("%1 of %2")
          .arg(PlanPicture::gib(static_cast<double>(given.value_or(now_bytes))),
               PlanPicture::gib(static_cast<double>(most))));
}

void PlanView::show_outcome(const std::shared_ptr<const PlanOutcome>& outcome) {
  if (outcome->is_complete) {
    slow_->stop();
    busy_->hide();
  }
  outcome_ = outcome;
  picture_ = PlanPicture(*outcome_);
  if (outcome->answer)
    show_answer();
  else
    show_no_answer();
  emit planned(outcome->answer && outcome->answer->fits());
}

void PlanView::show_no_answer() {
  plan_->hide();
  for (const Budget& budget : {gpu_, host_})
    budget.field->setPlaceholderText(tr("auto"));
  show_verdict();
  show_changes();
}

void PlanView::show_answer() {
  const PlanAnswer& answer = *outcome_->answer;
  const PlanRequest& request = answer.request;
  const auto& profile = answer.machine.machine.profile;
  const bool is_elsewhere = settings_->maybe_text("machine").has_value();
  const int64_t gpu_there =
      answer.machine.machine.gpu_free_bytes + answer.machine.machine.gpu_context_bytes;
  const int64_t gpu_most =
      profile && profile->gpu ? std::max(profile->gpu->memory_bytes, gpu_there) : gpu_there;
  const int64_t host_most = profile && is_elsewhere && profile->host.memory_bytes > 0
                                ? profile->host.memory_bytes
                                : read_host_memory().total_bytes;
  const int64_t gpu_now = request.gpu_budget_bytes + request.gpu_reserved_bytes;
  const bool has_host_budget = request.host_budget_bytes < INT64_MAX / 4;
  for (QWidget* widget :
       {static_cast<QWidget*>(gpu_.slider), static_cast<QWidget*>(gpu_.automatic)})
    widget->setEnabled(request.has_gpu &&
                       (widget == gpu_.slider || settings_->maybe_integer("gpu_memory")));
  if (request.has_gpu) {
    show_budget(gpu_, gpu_now, gpu_most);
  } else {
    gpu_.field->setPlaceholderText(tr("no GPU"));
    const QSignalBlocker blocker(gpu_.slider);
    gpu_.slider->setValue(gpu_.slider->minimum());
    gpu_.slider->setToolTip(
        tr("There is no GPU to plan for. Choose a card, or type an amount such as 11GiB."));
  }
  host_.slider->setEnabled(true);
  for (QSpinBox* box : {batch_, length_})
    box->setEnabled(true);
  show_budget(host_,
              has_host_budget ? request.host_budget_bytes + request.host_reserved_bytes : host_most,
              host_most);
  drive_->show_budget(answer.nvme ? answer.nvme->budget_bytes : std::nullopt);
  {
    const QSignalBlocker blocker(batch_);
    batch_->setValue(static_cast<int>(request.train_batch_size));
  }
  length_->setSpecialValueText(
      tr("auto: %1").arg(std::min<int64_t>(answer.model.max_positions, 2048)));
  length_->setMinimumWidth(length_->sizeHint().width() +
                           length_->fontMetrics().averageCharWidth() * 2);

  memory_->set_bars(tr("Memory by place"), picture_.memory);
  time_->set_bars(tr("Time of a step by resource"), picture_.time);
  memory_->setVisible(!picture_.memory.empty());
  read_out_->setVisible(!picture_.memory.empty());
  time_->setVisible(!picture_.time.empty());
  time_title_->setText(
      picture_.time.empty() ? tr("Time") : tr("A step: %1").arg(picture_.figures.front().second));
  time_title_->setVisible(!picture_.figures.empty());
  show_figures();
  notes_->setText(picture_.notes.join(QLatin1Char('\n')));
  notes_->setVisible(!picture_.notes.isEmpty());
  const auto n_assumed = static_cast<int>(picture_.assumptions.size());
  assumes_->setText(tr("The figures rest on %n assumption(s)", nullptr, n_assumed));
  assumes_->setAccessibleName(assumes_->text());
  assumes_->setVisible(n_assumed > 0);
  assumptions_->setText(picture_.assumptions.join(QLatin1Char('\n')));
  assumptions_->setVisible(n_assumed > 0 && assumes_->isChecked());
  show_verdict();
  show_changes();
  plan_->show();
}

void PlanView::show_figures() {
  while (QLayoutItem* item = figures_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  int row = 0;
  for (const auto& [name, value] : picture_.figures) {
    if (row == 0 && !picture_.time.empty() && name == picture_.figures.front().first) {
      ++row;  // the heading says it
      continue;
    }
    auto* left = new TextLabel(name);
    left->setForegroundRole(QPalette::PlaceholderText);
    QLabel* right = words();
    right->setText(value);
    right->setAccessibleName(QStringLiteral("%1: %2").arg(name, value));
    figures_->addWidget(left, row, 0, Qt::AlignTop);
    figures_->addWidget(right, row++, 1);
  }
}

void PlanView::show_verdict() {
  word_->setText(picture_.machine.isEmpty()
                     ? picture_.verdict_word
                     : tr("%1 \u2014 %2").arg(picture_.verdict_word, picture_.machine));
  why_->setText(picture_.why);
  help_->setText(picture_.help);
  help_->setVisible(!picture_.help.isEmpty());
  verdict_->setAccessibleName(tr("Memory plan: %1").arg(picture_.verdict_word));
  verdict_->setAccessibleDescription(picture_.summary);
  setAccessibleDescription(picture_.summary);
  paint_icon();
  verdict_->show();
}

void PlanView::paint_icon() {
  const bool is_answer = answer() != nullptr;
  const VerdictIcon icon = !is_answer || picture_.verdict == Verdict::does_not_fit
                               ? VerdictIcon::cross
                           : picture_.verdict == Verdict::tight ? VerdictIcon::mark
                                                                : VerdictIcon::tick;
  icon_->setPixmap(verdict_pixmap(icon, word_->fontMetrics().height() * 3 / 2, *this));
}

void PlanView::show_changes() {
  QLayout* layout = changes_->layout();
  while (QLayoutItem* item = layout->takeAt(0)) {
    item->widget()->deleteLater();
    delete item;
  }
  const auto& all = outcome_ ? outcome_->changes : std::vector<PlanChange>();
  changes_->setVisible(!all.empty());
  int n = 0;
  for (const PlanChange& change : all) {
    auto* button = new QPushButton(PlanPicture::text_of(change));
    button->setObjectName(QStringLiteral("plan_change_%1").arg(n++));
    button->setAccessibleName(tr("Set %1: then it fits").arg(button->text()));
    button->setToolTip(tr("With this it fits."));
    connect(button, &QPushButton::clicked, this, [this, settings = change.settings] {
      for (const auto& [key, value] : settings)
        emit change_wanted(key, value);
    });
    layout->addWidget(button);
  }
}

void PlanView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange)
    if (icon_ && outcome_) paint_icon();
}

}  // namespace ferry::gui
