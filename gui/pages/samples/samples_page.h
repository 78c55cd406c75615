#pragma once
// The texts that a run made while it learnt: prompts by steps, one of them whole, and beside it the
// same prompt after another number of steps.

#include <QTimer>

#include "gui/models/results/sample_grid.h"
#include "gui/pages/page.h"

class QComboBox;
class QLabel;
class QPushButton;
class QStackedWidget;
class QTableView;
class QTextEdit;

namespace ferry::gui {

class Notice;
class RunPicker;

class SamplesPage : public Page {
  Q_OBJECT

 public:
  explicit SamplesPage(Shared& shared, QWidget* parent = nullptr);
  ~SamplesPage() override;
  void show_run(const std::filesystem::path& run);
  void set_active(bool active) override;
  QList<QAction*> page_actions() override;

  const SampleGrid& grid() const { return grid_; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QWidget* make_grid();
  QWidget* make_texts();
  QWidget* make_empty();
  void take_run();
  void take_look(bool has_changed);
  void show_texts();
  void fill_steps();
  void show_nothing();
  /** The row and column that is chosen; -1: none. */
  int row() const;
  int column() const;
  void copy_text();

  RunPicker* picker_;
  Notice* message_;
  QStackedWidget* stack_;
  QTableView* table_;
  QComboBox* other_;
  QLabel *title_, *settings_, *other_settings_, *empty_title_, *empty_text_;
  QTextEdit *text_, *other_text_;
  QPushButton *copy_button_, *new_run_;
  QAction* copy_action_;
  SampleGrid grid_;
  QTimer timer_;
  int64_t chosen_step_ = -1, other_step_ = -1;  ///< -1: the one before
  bool has_looked_ = false;
};

}  // namespace ferry::gui
