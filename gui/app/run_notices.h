#pragma once
// Notices of the desktop that a run has ended or waits for room, whichever page is shown and
// whoever started the run. They go to org.freedesktop.Notifications on the session's bus, which
// desktops have with or without a system tray.

#include <QDBusConnection>
#include <QObject>
#include <map>
#include <optional>

#include "gui/models/runs/run_list_model.h"
#include "gui/models/settings/app_settings.h"

namespace ferry::gui {

class RunNotices : public QObject {
  Q_OBJECT

 public:
  RunNotices(const AppSettings& settings, const RunListModel& runs, QObject* parent = nullptr);
  ~RunNotices() override;

 signals:
  /** A run ended or waits for room; `text` is one line. Also where notices are off. */
  void happened(const QString& text);
  /** Said by the desktop, where it has notices. */
  void noticed(const QString& title, const QString& text);
  /** The notice of this run was clicked. */
  void chosen(const std::filesystem::path& run);

 private slots:
  // Signals of the bus; names and arguments are the service's.
  void take_action(uint id, const QString& action);
  void take_end(uint id, uint reason);

 private:
  void tell(const std::filesystem::path& run, bool has_ended);
  void show(const std::filesystem::path& run,
            const QString& title,
            const QString& text,
            bool is_good);
  bool connect_bus();

  const AppSettings& settings_;
  const RunListModel& runs_;
  std::optional<QDBusConnection> bus_;
  std::map<uint, std::filesystem::path> shown_;  ///< by the service's number of a notice
};

}  // namespace ferry::gui
