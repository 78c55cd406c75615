#include "gui/app/run_notices.h"

#include <QApplication>
#include <QStyle>
#include <QTimer>

#include "gui/models/runs/run_words.h"

namespace ferry::gui {

namespace {

constexpr int kTrayMs = 15'000;

}  // namespace

RunNotices::RunNotices(const AppSettings& settings, const RunListModel& runs, QObject* parent)
    : QObject(parent), settings_(settings), runs_(runs) {
  connect(&runs, &RunListModel::ended, this,
          [this](const std::filesystem::path& run) { tell(run, /*has_ended=*/true); });
  connect(&runs, &RunListModel::waits_for_room, this,
          [this](const std::filesystem::path& run) { tell(run, /*has_ended=*/false); });
  connect(&tray_, &QSystemTrayIcon::messageClicked, this, [this] { emit chosen(last_); });
}

void RunNotices::tell(const std::filesystem::path& run, bool has_ended) {
  const int row = runs_.row_of(run);
  if (row < 0) return;
  const service::RunFacts& facts = runs_.facts_of(row);
  const QString title =
      tr("%1: %2", "run and its state").arg(isolated(run_name(run)), state_text(facts));
  emit happened(title);
  if (!settings_.notifies()) return;
  last_ = run;
  const QString why = has_ended ? runs_.why_ended_of(row)
                                : tr("All steps are done, and its end does not fit the disk. "
                                     "Remove something, and it goes on by itself.");
  emit noticed(title, why);
  show(title, why, has_ended && run_group(facts.phase) != RunGroup::failed);
}

void RunNotices::show(const QString& title, const QString& text, bool is_good) {
  if (!QSystemTrayIcon::isSystemTrayAvailable() || !QSystemTrayIcon::supportsMessages()) return;
  const QIcon icon = QApplication::windowIcon();
  tray_.setIcon(icon.isNull() ? QApplication::style()->standardIcon(QStyle::SP_ComputerIcon)
                              : icon);
  tray_.show();
  tray_.showMessage(title, text, is_good ? QSystemTrayIcon::Information : QSystemTrayIcon::Warning,
                    kTrayMs);
  QTimer::singleShot(kTrayMs, &tray_, &QSystemTrayIcon::hide);
}

}  // namespace ferry::gui
