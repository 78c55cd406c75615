#include "gui/pages/new_run/review_panel.h"

#include <QtWidgets>

#include "gui/models/settings/option_text.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

ReviewPanel::ReviewPanel(SettingsModel& settings, QWidget* parent)
    : QWidget(parent), settings_(settings) {
  problems_heading_ = heading_label(tr("To fix before it can start"));
  problems_ = new QListWidget;
  problems_->setObjectName("review_problems");
  problems_->setAccessibleName(tr("Problems"));
  problems_->setWordWrap(true);
  problems_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  check_ = new TextLabel;
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
  show_code(*command_);
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
  set_ = new QTreeWidget;
  set_->setObjectName("review_settings");
  set_->setAccessibleName(tr("Settings of this run"));
  set_->setHeaderLabels({tr("Setting"), tr("Value"), tr("Default"), tr("Group")});
  set_->setRootIsDecorated(false);
  set_->setUniformRowHeights(true);
  set_->setAlternatingRowColors(true);
  set_->setMinimumHeight(6 * fontMetrics().lineSpacing());
  new ColumnFit(set_, {.rest = 1, .most_rest_chars = 90});
  layout->addSpacing(fontMetrics().height() / 2);
  layout->addWidget(heading_label(tr("What is set")));
  layout->addWidget(set_, 1);
  connect(set_, &QTreeWidget::itemActivated, this, [this](const QTreeWidgetItem* item) {
    emit problem_chosen(item->data(0, Qt::UserRole).toString());
  });
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
        row < 0
            ? problem.text
            : tr("%1: %2", "setting: problem").arg(label_of(settings_.option(row)), problem.text);
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

void ReviewPanel::show_settings() {
  set_->clear();
  for (int row = 0; row < settings_.rowCount(); ++row) {
    const auto at = [&](int column) { return settings_.index(row, column).data().toString(); };
    if (at(SettingsModel::changed_column).isEmpty()) continue;
    auto* const item = new QTreeWidgetItem(
        set_, {at(SettingsModel::label_column), at(SettingsModel::value_column),
               at(SettingsModel::default_column), at(SettingsModel::group_column)});
    item->setData(0, Qt::UserRole, settings_.index(row, 0).data(SettingsModel::key_role));
    item->setToolTip(1, at(SettingsModel::value_column));
  }
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
