#pragma once
// Notices of the system's tray that a run has ended, whichever page is shown and whoever started
// the run.

#include <QObject>
#include <QSystemTrayIcon>

#include "gui/models/runs/run_list_model.h"
#include "gui/models/settings/app_settings.h"

namespace ferry::gui {

class RunNotices : public QObject {
  Q_OBJECT

 public:
  RunNotices(const AppSettings& settings, const RunListModel& runs, QObject* parent = nullptr);

 signals:
  /** A run ended; `text` is one line. Also where notices are off. */
  void run_ended(const QString& text);
  /** Said by the tray, where the desktop has one. */
  void noticed(const QString& title, const QString& text);
  /** The notice of this run was clicked. */
  void chosen(const std::filesystem::path& run);

 private:
  void tell(const std::filesystem::path& run);
  void show(const QString& title, const QString& text, bool is_good);

  const AppSettings& settings_;
  const RunListModel& runs_;
  QSystemTrayIcon tray_;
  std::filesystem::path last_;
};

}  // namespace ferry::gui
