#pragma once
// The window: a list of pages, the page, menus, a status bar. It goes where pages ask it to.

#include <QMainWindow>
#include <array>
#include <optional>
#include <string>

#include "gui/app/run_notices.h"
#include "gui/models/plan/plan_thread.h"
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

 private:
  void make_pages();
  void make_menus();
  void connect_navigator();
  void fill_page_menu();
  void guard_wheels();
  /** The plan of the new run, on the machine that was chosen for it. */
  void show_plan(PlanView& plan);
  config::Config planned_on(const std::string& machine) const;
  void say(const QString& text);

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
  std::optional<config::Config> planned_;  ///< the new run's settings
  std::string planned_machine_ = "auto";
  PlanThread plan_here_;  ///< asked where another machine's plan is shown: the run starts here
  SamplesPage* samples_ = nullptr;
  TryItPage* try_ = nullptr;
  QListWidget* list_ = nullptr;
  QStackedWidget* stack_ = nullptr;
  QMenu* page_menu_ = nullptr;
};

}  // namespace ferry::gui
