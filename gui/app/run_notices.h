#pragma once
// Notices of the system's tray that a run has ended or waits for room, whichever page is shown and
// whoever started the run.

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
  /** A run ended or waits for room; `text` is one line. Also where notices are off. */
  void happened(const QString& text);
  /** Said by the tray, where the desktop has one. */
  void noticed(const QString& title, const QString& text);
  /** The notice of this run was clicked. */
  void chosen(const std::filesystem::path& run);

 private:
  void tell(const std::filesystem::path& run, bool has_ended);
  void show(const QString& title, const QString& text, bool is_good);

  const AppSettings& settings_;
  const RunListModel& runs_;
  QSystemTrayIcon tray_;
  std::filesystem::path last_;
};

}  // namespace ferry::gui
