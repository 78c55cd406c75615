#include "gui/pages/doctor/doctor_page.h"

#include <QtWidgets>
#include <algorithm>

#include "gui/models/machine/finding_words.h"
#include "gui/models/service_words.h"
#include "gui/models/text.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/look.h"
#include "gui/widgets/plan/verdict_icon.h"
#include "gui/widgets/sheet.h"

namespace ferry::gui {

using service::Finding;
using service::Mend;
using service::Severity;

namespace {

/** About as long as the trainer measures. */
constexpr int kMeasuring_s = 20;

QLabel* wrapped_words(const QString& text = {}) {
  auto* label = new TextLabel(text);
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  // A page that scrolls takes its height from the least width of what is on it.
  constexpr int kLeastChars = 46;
  label->setMinimumWidth(kLeastChars * label->fontMetrics().averageCharWidth());
  return label;
}

void clear(QLayout& layout) {
  while (QLayoutItem* item = layout.takeAt(0)) {
    if (item->widget()) {
      item->widget()->hide();
      item->widget()->deleteLater();
    }
    delete item;
  }
}

void fill(QGridLayout& grid, const std::vector<std::pair<QString, QString>>& rows) {
  clear(grid);
  for (int row = 0; row < grid.rowCount(); ++row)
    grid.setRowStretch(row, 0);
  int row = 0;
  // Letters of another script are higher: names and the first lines of values stand on one line.
  int line = 0;
  for (const auto& [name, value] : rows)
    line =
        std::max({line, TextLabel(name).sizeHint().height(), TextLabel(value).sizeHint().height()});
  for (const auto& [name, value] : rows) {
    auto* left = new TextLabel(name);
    left->setMinimumHeight(line);
    left->setForegroundRole(QPalette::PlaceholderText);
    QLabel* right = wrapped_words(value);
    right->setMinimumHeight(line);
    right->setAccessibleName(QStringLiteral("%1: %2").arg(name, value));
    grid.addWidget(left, row, 0, Qt::AlignTop);
    grid.addWidget(right, row++, 1);
  }
  grid.setColumnStretch(1, 1);
  // Height that the rows do not need goes below them, and does not spread them unevenly.
  grid.setRowStretch(row, 1);
}

QString word_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return DoctorPage::tr("Error");
    case Severity::warning:
      return DoctorPage::tr("Warning");
    case Severity::note:
      return DoctorPage::tr("Note");
  }
  return {};
}

VerdictIcon icon_of(Severity severity) {
  return severity == Severity::error     ? VerdictIcon::cross
         : severity == Severity::warning ? VerdictIcon::mark
                                         : VerdictIcon::note;
}

QFrame* card() {
  auto* frame = new QFrame;
  frame->setFrameShape(QFrame::StyledPanel);
  frame->setBackgroundRole(QPalette::Base);
  frame->setAutoFillBackground(true);
  return frame;
}

}  // namespace

DoctorPage::DoctorPage(Shared& shared, QWidget* parent) : Page(shared, parent) {
  look_ = new QAction(tr("&Look again"), this);
  look_->setShortcut(QKeySequence::Refresh);
  connect(look_, &QAction::triggered, &thread_, &DoctorThread::look);
  copy_ = new QAction(tr("&Copy report"), this);
  connect(copy_, &QAction::triggered, this, &DoctorPage::copy_report);
  measure_action_ = new QAction(tr("&Measure now"), this);
  connect(measure_action_, &QAction::triggered, this, &DoctorPage::measure);

  auto* inside = new QWidget;
  auto* column = new QVBoxLayout(inside);
  column->setContentsMargins(16, 16, 16, 16);
  column->setSpacing(14);
  column->addWidget(make_head());
  auto* list = new QWidget;
  list->setObjectName("doctor_findings");
  findings_ = new QVBoxLayout(list);
  findings_->setContentsMargins(0, 0, 0, 0);
  column->addWidget(list);

  auto* two = new QHBoxLayout;
  two->setSpacing(16);
  const auto section = [](const QString& title, QLayout* content) {
    auto* box = new QVBoxLayout;
    box->setSpacing(8);
    box->addWidget(heading_label(title));
    box->addLayout(content);
    return box;
  };
  facts_ = new QGridLayout;
  facts_->setHorizontalSpacing(14);
  two->addLayout(section(tr("What it has"), facts_), 1);
  auto* measured = new QVBoxLayout;
  profile_words_ = wrapped_words();
  profile_words_->setObjectName("doctor_profile_words");
  measured->addWidget(profile_words_);
  profile_ = new QGridLayout;
  profile_->setHorizontalSpacing(14);
  measured->addLayout(profile_);
  auto* buttons = new QHBoxLayout;
  measure_ = new QPushButton(tr("&Measure now"));
  measure_->setObjectName("doctor_measure");
  measure_->setToolTip(
      tr("Takes some %1 seconds and needs the GPU for itself. Plans tell time with the figures.")
          .arg(kMeasuring_s));
  connect(measure_, &QPushButton::clicked, this, &DoctorPage::measure);
  cancel_ = new QPushButton(tr("Canc&el"));
  cancel_->setObjectName("doctor_cancel");
  connect(cancel_, &QPushButton::clicked, &thread_, &DoctorThread::cancel);
  progress_ = new QProgressBar;
  progress_->setObjectName("doctor_progress");
  progress_->setAccessibleName(tr("Measuring"));
  progress_->setRange(0, 100);
  buttons->addWidget(measure_);
  buttons->addWidget(cancel_);
  buttons->addWidget(progress_, 1);
  buttons->addStretch();
  measured->addLayout(buttons);
  two->addLayout(section(tr("How fast it is"), measured), 1);
  // Both begin at the top, whichever is higher.
  for (int i = 0; i < two->count(); ++i)
    two->setAlignment(two->itemAt(i)->layout(), Qt::AlignTop);
  column->addLayout(two);

  column->addWidget(heading_label(tr("Models that are here")));
  no_models_ = wrapped_words(
      tr("None. Download one on the Start page, or set FERRY_MODELS to a directory of "
         "models."));
  column->addWidget(no_models_);
  models_ = new QTableWidget(0, 4);
  models_->setObjectName("doctor_models");
  models_->setAccessibleName(tr("Models that are here"));
  models_->setHorizontalHeaderLabels({tr("Name"), tr("Family"), tr("Found in"), tr("Directory")});
  models_->verticalHeader()->hide();
  models_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  models_->setSelectionBehavior(QAbstractItemView::SelectRows);
  models_->setShowGrid(false);
  models_->setAlternatingRowColors(true);
  models_->setTabKeyNavigation(false);
  models_->setWordWrap(false);  // every row is one line, whatever the width of its columns
  new ColumnFit(models_, {.rest = 3});
  models_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  models_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  column->addWidget(models_);

  auto* scroll = new QScrollArea;
  scroll->setFocusPolicy(Qt::ClickFocus);  // the tab key passes: it would show no focus
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidget(new Sheet(inside));
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->addWidget(scroll);

  tick_ = new QTimer(this);
  tick_->setInterval(250);
  connect(tick_, &QTimer::timeout, this, &DoctorPage::show_measuring);
  connect(&thread_, &DoctorThread::looked, this, &DoctorPage::show_report);
  verdict_->setText(tr("Looking at this machine\u2026"));
  show_measuring();
}

QWidget* DoctorPage::make_head() {
  auto* head = new QWidget;
  auto* row = new QHBoxLayout(head);
  row->setContentsMargins(0, 0, 0, 0);
  icon_ = new TextLabel;
  verdict_ = heading_label({}, kTitle);
  verdict_->setObjectName("doctor_verdict");
  const auto button = [this](QAction* action, const char* name) {
    auto* made = new QPushButton(action->text());
    made->setObjectName(name);
    connect(made, &QPushButton::clicked, action, &QAction::trigger);
    return made;
  };
  row->addWidget(icon_);
  row->addWidget(verdict_, 1);
  row->addWidget(button(look_, "doctor_look"));
  row->addWidget(button(copy_, "doctor_copy"));
  return head;
}

void DoctorPage::set_active(bool active) {
  if (active) thread_.look();
}

QList<QAction*> DoctorPage::page_actions() {
  return {look_, measure_action_, copy_};
}

void DoctorPage::show_report(const std::shared_ptr<const DoctorReport>& report) {
  report_ = report;
  const auto n_of = [&](Severity severity) {
    return std::ranges::count(report->findings, severity, &Finding::severity);
  };
  const bool is_fine = report->is_usable && n_of(Severity::warning) == 0;
  verdict_->setText(!report->is_usable ? tr("Ferry cannot train here until the errors are mended")
                    : is_fine          ? tr("Ferry can train here")
                                       : tr("Ferry can train here; something could be better"));
  icon_->setPixmap(verdict_pixmap(!report->is_usable ? VerdictIcon::cross
                                  : is_fine          ? VerdictIcon::tick
                                                     : VerdictIcon::mark,
                                  verdict_->fontMetrics().height() * 4 / 3, *this));
  show_findings();
  fill(*facts_, fact_rows(report->facts));
  show_profile();
  show_models();
  show_measuring();
}

void DoctorPage::show_findings() {
  clear(*findings_);
  int place = 0;
  for (const Finding& finding : report_->findings)
    findings_->addWidget(widget_of(finding, place++));
}

QWidget* DoctorPage::widget_of(const Finding& finding, int place) {
  QFrame* frame = card();
  frame->setObjectName(QStringLiteral("doctor_finding_%1").arg(place));
  auto* row = new QHBoxLayout(frame);
  auto* icon = new TextLabel;
  icon->setPixmap(verdict_pixmap(icon_of(finding.severity), fontMetrics().height() * 5 / 4, *this));
  row->addWidget(icon, 0, Qt::AlignTop);
  auto* said = new QVBoxLayout;
  const FindingWords words = words_of_finding(finding);
  const QString& what = words.what;
  QLabel* first = wrapped_words(tr("%1: %2").arg(word_of(finding.severity), what));
  first->setFont(bold_font(first->font()));
  said->addWidget(first);
  if (!words.cure.isEmpty()) said->addWidget(wrapped_words(words.cure));
  if (!words.command.isEmpty()) {
    QLabel* command = wrapped_words(words.command);
    command->setObjectName(QStringLiteral("doctor_command_%1").arg(place));
    command->setAccessibleName(tr("Command: %1").arg(words.command));
    command->setForegroundRole(QPalette::PlaceholderText);
    show_code(*command);
    said->addWidget(command);
  }
  row->addLayout(said, 1);
  frame->setAccessibleName(tr("%1: %2").arg(word_of(finding.severity), what));
  frame->setAccessibleDescription(words.cure);
  const auto button = [&](const QString& text, const QString& name) {
    auto* made = new QPushButton(text);
    made->setObjectName(QStringLiteral("doctor_%1_%2").arg(name).arg(place));
    made->setAccessibleName(tr("%1, of: %2").arg(text, what));
    row->addWidget(made, 0, Qt::AlignTop);
    return made;
  };
  if (finding.mend == Mend::measure)
    connect(button(tr("Measure now"), "mend"), &QPushButton::clicked, this, &DoctorPage::measure);
  if (finding.mend == Mend::runs_directory)
    connect(button(tr("Choose another directory"), "mend"), &QPushButton::clicked, this,
            [this] { emit shared().navigator.page_wanted(PageId::settings); });
  if (!words.command.isEmpty())
    connect(button(tr("Copy command"), "copy_cure"), &QPushButton::clicked, this,
            [this, command = words.command] {
              QGuiApplication::clipboard()->setText(command);
              emit shared().navigator.said(tr("Copied."));
            });
  return frame;
}

void DoctorPage::show_profile() {
  const auto& profile = report_->facts.profile;
  if (!profile) {
    profile_words_->setText(tr("Not measured yet: plans cannot tell how long a run takes."));
    clear(*profile_);
    return;
  }
  QStringList said = {tr("%1: %2.").arg(isolated(to_text(profile->name)),
                                        isolated(service_words(to_text(profile->source))))};
  for (const std::string& skipped : report_->measured.skipped)
    said << tr("Left out: %1.").arg(isolated(to_text(skipped)));
  profile_words_->setText(said.join(QLatin1Char('\n')));
  fill(*profile_, profile_rows(*profile));
}

void DoctorPage::show_models() {
  const auto& models = report_->models;
  no_models_->setVisible(models.empty());
  models_->setVisible(!models.empty());
  models_->setRowCount(static_cast<int>(models.size()));
  for (int row = 0; row < models_->rowCount(); ++row) {
    const ModelHere& model = models[static_cast<size_t>(row)];
    int column = 0;
    const QString family = model.family.isEmpty() ? tr("unreadable") : model.family;
    for (const QString& text : {model.name, family, model.place, model.directory}) {
      auto* item = new QTableWidgetItem(text);
      item->setToolTip(text);
      models_->setItem(row, column++, item);
    }
  }
  models_->resizeRowsToContents();
  // The page scrolls, not the table in it.
  models_->setFixedHeight(models_->horizontalHeader()->sizeHint().height() +
                          models_->verticalHeader()->length() + 2 * models_->frameWidth() + 2);
}

void DoctorPage::show_measuring() {
  const bool is_measuring = thread_.is_measuring();
  const bool has_trainer = !report_ || report_->facts.trainer.has_value();
  measure_->setVisible(!is_measuring);
  measure_->setEnabled(has_trainer);
  measure_action_->setEnabled(!is_measuring && has_trainer);
  cancel_->setVisible(is_measuring);
  progress_->setVisible(is_measuring);
  if (!is_measuring) return tick_->stop();
  const double seconds = thread_.measuring_s();
  progress_->setValue(std::min(static_cast<int>(100 * seconds / kMeasuring_s), 97));
  progress_->setFormat(tr("%1 s of about %2 s").arg(static_cast<int>(seconds)).arg(kMeasuring_s));
}

void DoctorPage::measure() {
  thread_.measure();
  tick_->start();
  show_measuring();
}

void DoctorPage::copy_report() {
  if (!report_) return;
  QGuiApplication::clipboard()->setText(without_isolates(report_text(*report_)));
  emit shared().navigator.said(tr("The report is copied."));
}

}  // namespace ferry::gui
