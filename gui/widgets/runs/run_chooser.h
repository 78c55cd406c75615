#pragma once
// The runs that are known to choose from, the newest first: one, or several.

#include <QWidget>
#include <filesystem>
#include <vector>

#include "gui/models/runs/run_filter.h"

class QHBoxLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QTreeView;

namespace ferry::gui {

class RunChooser : public QWidget {
  Q_OBJECT

 public:
  /** most: runs that may be chosen at once. */
  RunChooser(RunListModel& runs,
             const QString& title,
             const QString& button,
             int most,
             QWidget* parent = nullptr);

  std::vector<std::filesystem::path> selected() const;
  /** One more, left of the one that chooses. */
  void add_button(QPushButton* button);

 signals:
  void chosen(const std::vector<std::filesystem::path>& runs);

 private:
  void show_runs();
  void update_button();
  void choose();

  RunListModel& runs_;
  RunFilter filter_;
  int most_;
  QLabel* empty_ = nullptr;
  QLineEdit* search_ = nullptr;
  QTreeView* list_ = nullptr;
  QPushButton* button_ = nullptr;
  QHBoxLayout* buttons_ = nullptr;
};

}  // namespace ferry::gui
