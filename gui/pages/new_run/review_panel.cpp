#include "gui/pages/new_run/review_panel.h"

#include <QtWidgets>

#include "gui/models/option_text.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

ReviewPanel::ReviewPanel(SettingsModel& settings, QWidget* parent)
    : QWidget(parent), settings_(settings) {
  problems_heading_ = heading_label(tr("To mend before it can start"));
  problems_ = new QListWidget;
  problems_->setObjectName("review_problems");
  problems_->setAccessibleName(tr("Problems"));
  problems_->setWordWrap(true);
  problems_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  check_ = new QLabel;
  check_->setObjectName("check_state");
  check_->setWordWrap(true);
  check_error_ = new ErrorLabel;
  check_error_->setObjectName("check_error");
  notes_ = quiet_label();
  notes_->setObjectName("check_notes");
  notes_->setWordWrap(true);
  command_ = new QPlainTextEdit;
  command_->setObjectName("command");
  command_->setReadOnly(true);
  command_->setTabChangesFocus(true);
  command_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  command_->setAccessibleName(tr("Command line"));
  command_->setFixedHeight(6 * command_->fontMetrics().lineSpacing());
  auto* const command_label = heading_label(tr("The command that starts it"));
  auto* const copy = new QPushButton(tr("&Copy command"));
  copy->setObjectName("copy_command");
  connect(copy, &QPushButton::clicked, this,
          [this] { QApplication::clipboard()->setText(command_->toPlainText()); });

  auto* const title = new QHBoxLayout;
  title->addWidget(command_label, 1);
  title->addWidget(copy);
  auto* const layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(problems_heading_);
  layout->addWidget(problems_);
  layout->addWidget(heading_label(tr("Model, data and directory")));
  layout->addWidget(check_);
  layout->addWidget(check_error_);
  layout->addWidget(notes_);
  layout->addSpacing(fontMetrics().height() / 2);
  layout->addLayout(title);
  layout->addWidget(command_);
  layout->addStretch(1);
  const auto choose = [this](const QListWidgetItem* item) {
    emit problem_chosen(item->data(Qt::UserRole).toString());
  };
  connect(problems_, &QListWidget::itemClicked, this, choose);
  connect(problems_, &QListWidget::itemActivated, this, choose);
  show_problems({});
  show_check(Check::none);
}

void ReviewPanel::show_problems(const std::vector<SettingsModel::Problem>& problems) {
  problems_->clear();
  for (const SettingsModel::Problem& problem : problems) {
    const int row = settings_.row_of(problem.key);
    const QString text =
        row < 0 ? problem.text : tr("%1: %2").arg(label_of(settings_.option(row)), problem.text);
    auto* const item = new QListWidgetItem(QStringLiteral("⚠ ") + text, problems_);
    item->setData(Qt::UserRole, problem.key);
    item->setData(Qt::AccessibleTextRole, text);
  }
  const bool has_some = !problems.empty();
  problems_heading_->setVisible(has_some);
  problems_->setVisible(has_some);
  const int rows = std::clamp<int>(static_cast<int>(problems.size()), 1, 6);
  problems_->setFixedHeight((2 * rows + 1) * fontMetrics().lineSpacing());
}

void ReviewPanel::show_command(const QString& command) {
  if (command_->toPlainText() != command) command_->setPlainText(command);
  command_->setPlaceholderText(tr("The command is shown once all settings are in order."));
}

void ReviewPanel::show_check(Check check, const QString& notes) {
  check_->setVisible(check != Check::failed);
  check_->setText(check == Check::running  ? tr("Reading model and data…")
                  : check == Check::passed ? tr("✓ Model, data and directory are in order.")
                                           : tr("They are read once all settings are in order."));
  check_error_->set_error(check == Check::failed ? notes : QString());
  notes_->setText(check == Check::passed ? notes : QString());
  notes_->setVisible(check == Check::passed && !notes.isEmpty());
}

}  // namespace ferry::gui
