#pragma once
// The window: a list of pages, the page, menus, a status bar. It goes where pages ask it to.

#include <QMainWindow>
#include <array>

#include "gui/app/run_notices.h"
#include "gui/models/machine/host_load.h"
#include "gui/models/plan/plan_thread.h"
#include "gui/models/plan/what_if.h"
#include "gui/models/runs/run_keeper.h"
#include "gui/models/runs/run_requests.h"
#include "gui/pages/page.h"

class QListWidget;
class QMenu;
class QStackedWidget;

namespace ferry::gui {

class ComparePage;
class ExportPage;
class LivePage;
class NewRunPage;
class PlanView;
class SamplesPage;
class TryItPage;

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(AppSettings& settings, QWidget* parent = nullptr);

  void show_page(PageId page);
  PageId current_page() const;
  Page& page(PageId id) const { return *pages_[static_cast<size_t>(id)]; }
  Navigator& navigator() { return navigator_; }
  Launcher& launcher() { return launcher_; }
  RunListModel& runs() { return runs_; }
  RunQueue& queue() { return queue_; }
  RunNotices& notices() { return notices_; }

 protected:
  void closeEvent(QCloseEvent* event) override;
  void changeEvent(QEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  /** The largest window that fits the screen with its frame. */
  QSize room_on_screen() const;
  void make_pages();
  void make_menus();
  void connect_navigator();
  void fill_page_menu();
  void guard_wheels();
  /** The plan of the new run, on the machine that was chosen for it. */
  void show_plan(PlanView& plan);
  void say(const QString& text);
  /** Sentences on the work that nobody does while no app is open; empty: there is none. */
  QStringList left_behind();
  void ask_to_leave(const QStringList& left);
  void zoom(int percent);

  AppSettings& settings_;
  Launcher launcher_;
  RunListModel runs_;
  RunQueue queue_;
  RunRequests requests_;
  RunKeeper keeper_;
  RunNotices notices_;
  Navigator navigator_;
  Shared shared_;
  std::array<Page*, 10> pages_{};
  ComparePage* compare_ = nullptr;
  ExportPage* export_ = nullptr;
  LivePage* live_ = nullptr;
  NewRunPage* new_run_ = nullptr;
  WhatIf what_if_;        ///< the new run's settings, on the machine that is planned for
  PlanThread plan_here_;  ///< asked where another machine's plan is shown: the run starts here
  SamplesPage* samples_ = nullptr;
  TryItPage* try_ = nullptr;
  QListWidget* list_ = nullptr;
  QStackedWidget* stack_ = nullptr;
  QMenu* page_menu_ = nullptr;
  HostLoadWatch host_load_;
  bool is_leaving_ = false;  ///< the user was asked, and leaves
};

}  // namespace ferry::gui
