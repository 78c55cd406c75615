#pragma once
// The memory plan of a run, live: what lies where, how long a step takes, whether it fits, and what
// would help. Asks the planner in a thread; changes of settings go through change_wanted, so that a
// form can follow.

#include <QWidget>
#include <memory>
#include <optional>

#include "gui/models/plan/plan_picture.h"
#include "gui/models/plan/plan_thread.h"
#include "src/config/config.h"

class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QSlider;
class QSpinBox;
class QTimer;
class QToolButton;

namespace ferry::gui {

class DriveFields;
class ErrorLabel;
class StackedBars;

class PlanView : public QWidget {
  Q_OBJECT

 public:
  explicit PlanView(QWidget* parent = nullptr);

  /** Plans a run with these settings. */
  void set_settings(const config::Config& settings);
  /** There is nothing to plan yet, and why. */
  void show_missing(const QString& why);
  /** A plan of another machine: what is changed is tried, and the run keeps its settings. */
  void show_what_if(bool is_elsewhere, bool has_changes);
  /** The answer shown; null: none came yet, or settings, model or data are wrong. */
  const service::PlanAnswer* answer() const;
  /** Waits for an answer to the last settings. */
  bool is_planning() const { return thread_.is_waiting(); }
  /** All that is shown, in words. */
  QString summary() const { return picture_.summary; }

 signals:
  /** The user wants this setting: "gpu_memory", "8GiB". */
  void change_wanted(const QString& key, const QString& value);
  /** What was tried on another machine shall be settings of the run. */
  void take_over_wanted();
  /** An answer is shown, or a fault. */
  void planned(bool fits);

 private:
  /** A slider with a field, of one memory. */
  struct Budget {
    QString key;
    QSlider* slider = nullptr;
    QLineEdit* field = nullptr;
    QToolButton* automatic = nullptr;
  };
  void make_controls();
  Budget make_budget(const QString& key, const QString& label, const QString& name, int row);
  void make_drive_fields(int row);
  void wish_budget(const Budget& budget, const QString& text);
  void show_budget(const Budget& budget, int64_t now_bytes, int64_t most_bytes);
  void show_trouble(const std::optional<QString>& words);
  void show_controls();
  void show_outcome(const std::shared_ptr<const PlanOutcome>& outcome);
  void show_answer();
  void show_no_answer();
  void show_verdict();
  void show_changes();
  void show_figures();
  void paint_icon();
  void changeEvent(QEvent* event) override;

  PlanThread thread_;
  std::optional<config::Config> settings_;
  std::shared_ptr<const PlanOutcome> outcome_;
  PlanPicture picture_;
  QTimer* slow_ = nullptr;  ///< says that it is planning where that takes a while
  QComboBox* card_ = nullptr;
  QSpinBox *batch_ = nullptr, *length_ = nullptr;
  Budget gpu_, host_;
  DriveFields* drive_ = nullptr;
  QGridLayout* controls_ = nullptr;
  ErrorLabel* field_error_ = nullptr;
  QWidget* what_if_ = nullptr;
  QPushButton* take_over_ = nullptr;
  QWidget* verdict_ = nullptr;
  QLabel *icon_ = nullptr, *word_ = nullptr, *why_ = nullptr, *help_ = nullptr, *busy_ = nullptr;
  QWidget* changes_ = nullptr;
  QWidget* plan_ = nullptr;  ///< bars and figures; hidden while there is no answer
  StackedBars *memory_ = nullptr, *time_ = nullptr;
  QLabel *read_out_ = nullptr, *time_title_ = nullptr, *notes_ = nullptr;
  QToolButton* assumes_ = nullptr;  ///< shows the assumptions
  QLabel* assumptions_ = nullptr;
  QGridLayout* figures_ = nullptr;
};

}  // namespace ferry::gui
