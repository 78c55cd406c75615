#pragma once
// The end of a new run: what is wrong, whether model, data and directory are in order, and the
// command that starts it.

#include <QWidget>

#include "gui/models/settings/settings_model.h"

class QLabel;
class QListWidget;
class QPlainTextEdit;
class QTreeWidget;

namespace ferry::gui {

class ErrorLabel;

class ReviewPanel : public QWidget {
  Q_OBJECT

 public:
  explicit ReviewPanel(SettingsModel& settings, QWidget* parent = nullptr);

  void show_problems(const std::vector<SettingsModel::Problem>& problems);
  void show_command(const QString& command);
  /** The settings that are not the built-in ones. */
  void show_settings();

  enum class Check { none, running, passed, failed };
  /** `notes`: what the data were taken for, or why it failed. */
  void show_check(Check check, const QString& notes = {});

 signals:
  /** The user wants to mend or change this setting. */
  void problem_chosen(const QString& key);

 private:
  SettingsModel& settings_;
  QLabel* problems_heading_ = nullptr;
  QListWidget* problems_ = nullptr;
  QLabel *check_ = nullptr, *notes_ = nullptr;
  ErrorLabel* check_error_ = nullptr;
  QPlainTextEdit* command_ = nullptr;
  QTreeWidget* set_ = nullptr;
};

}  // namespace ferry::gui
