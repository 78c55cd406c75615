#pragma once
// The newest runs to choose from: one, or several.

#include <QWidget>
#include <filesystem>
#include <vector>

#include "gui/models/recent_runs.h"

class QHBoxLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QTreeWidget;

namespace ferry::gui {

class RunChooser : public QWidget {
  Q_OBJECT

 public:
  /** most: runs that may be chosen at once. */
  RunChooser(const QString& title, const QString& button, int most, QWidget* parent = nullptr);

  /** Looks for runs; the list follows. */
  void look(const std::filesystem::path& directory);
  std::vector<std::filesystem::path> selected() const;
  /** One more, left of the one that chooses. */
  void add_button(QPushButton* button);
  RecentRuns& runs() { return runs_; }

 signals:
  void chosen(const std::vector<std::filesystem::path>& runs);

 private:
  void fill();
  void filter(const QString& text);
  void update_button();
  void choose();

  int most_;
  RecentRuns runs_;
  QLabel* empty_ = nullptr;
  QLineEdit* search_ = nullptr;
  QTreeWidget* list_ = nullptr;
  QPushButton* button_ = nullptr;
  QHBoxLayout* buttons_ = nullptr;
};

}  // namespace ferry::gui
