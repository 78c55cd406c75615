#pragma once
// A page of the main window.

#include <QWidget>

#include "gui/models/process/launcher.h"
#include "gui/models/runs/run_list_model.h"
#include "gui/models/runs/run_queue.h"
#include "gui/models/settings/app_settings.h"
#include "gui/pages/navigator.h"

class QAction;

namespace ferry::gui {

/** The parts that all pages share; it outlives them. */
struct Shared {
  AppSettings& settings;
  Launcher& launcher;
  Navigator& navigator;
  RunListModel& runs;
  RunQueue& queue;
};

/** Between a page's edge and what is on it. */
inline constexpr int kPageMargin = 16;

class Page : public QWidget {
  Q_OBJECT

 public:
  explicit Page(Shared& shared, QWidget* parent = nullptr) : QWidget(parent), shared_(shared) {}

  /** The page is shown, or no longer: what looks again and again does so only while it is. */
  virtual void set_active(bool active) { Q_UNUSED(active); }
  /** The page's own actions, for the window's menu of the page. */
  virtual QList<QAction*> page_actions() { return {}; }

 protected:
  Shared& shared() { return shared_; }

 private:
  Shared& shared_;
};

}  // namespace ferry::gui
