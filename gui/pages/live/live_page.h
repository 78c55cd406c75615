#pragma once
// One run while it goes on, and after: what it does, its curves, its log, and the buttons that
// steer it. It ends no run by being closed.

#include <memory>

#include "gui/models/machine/gpu_load.h"
#include "gui/models/runs/run_follower.h"
#include "gui/pages/page.h"

class QLabel;
class QSplitter;
class QStackedLayout;
class QToolButton;

namespace ferry::gui {

class ActionBar;
class LiveCharts;
class LogPane;
class Notice;
class RunHeader;
class RunChooser;
class SettingChange;
class SmoothingBox;

class LivePage : public Page {
  Q_OBJECT

 public:
  explicit LivePage(Shared& shared, QWidget* parent = nullptr);
  ~LivePage() override;

  void show_run(const std::filesystem::path& run);
  /** Back to the list of runs. */
  void show_picker();
  void set_active(bool active) override;
  QList<QAction*> page_actions() override;

  /** Null where no run is chosen. */
  RunFollower* follower() const { return follower_.get(); }
  LiveCharts& charts() { return *charts_; }
  ActionBar& actions() { return *actions_; }
  LogPane& log() { return *log_; }
  /** The line at the top: why the run ended, what a pause means. */
  QString notice() const;
  /** The answer to the last action. */
  QString answer() const;

 private:
  void make_run_page();
  void connect_follower();
  void say_answer(const QString& text);
  void show_state();
  void show_progress();
  void act(service::RunAction action);
  void note_end(const QString& phase);

  QStackedLayout* stack_ = nullptr;
  RunChooser* picker_ = nullptr;
  QWidget* run_page_ = nullptr;
  RunHeader* header_ = nullptr;
  ActionBar* actions_ = nullptr;
  SettingChange* change_ = nullptr;
  Notice* notice_ = nullptr;
  QLabel* answer_ = nullptr;
  SmoothingBox* smoothing_ = nullptr;
  LiveCharts* charts_ = nullptr;
  LogPane* log_ = nullptr;
  QSplitter* splitter_ = nullptr;
  QAction* other_run_ = nullptr;
  QAction* open_folder_ = nullptr;
  QToolButton *try_button_ = nullptr, *export_button_ = nullptr;
  std::unique_ptr<RunFollower> follower_;
  GpuLoadWatch gpu_;
  QString start_trouble_;  ///< why a new process of the run did not start
  bool is_active_ = false, has_settings_ = false;
};

}  // namespace ferry::gui
