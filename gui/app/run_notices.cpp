#include "gui/app/run_notices.h"

#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QFileInfo>

#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace {

const QString kService = QStringLiteral("org.freedesktop.Notifications");
const QString kPath = QStringLiteral("/org/freedesktop/Notifications");
const QString kOpen = QStringLiteral("default");  ///< the action of a click on the notice itself

/** Where the session's bus listens; empty: there is none. Qt would start one where none is told. */
QString bus_address() {
  if (const QString told = qEnvironmentVariable("DBUS_SESSION_BUS_ADDRESS"); !told.isEmpty())
    return told;
  const QString socket = qEnvironmentVariable("XDG_RUNTIME_DIR") + QStringLiteral("/bus");
  return QFileInfo::exists(socket) ? QStringLiteral("unix:path=") + socket : QString();
}

/** A connection of its own: each window, and each test, ends its own. */
QString new_name() {
  static int n = 0;
  return QStringLiteral("ferry-notices-%1").arg(++n);
}

}  // namespace

RunNotices::RunNotices(const AppSettings& settings, const RunListModel& runs, QObject* parent)
    : QObject(parent), settings_(settings), runs_(runs) {
  connect(&runs, &RunListModel::ended, this,
          [this](const std::filesystem::path& run) { tell(run, /*has_ended=*/true); });
  connect(&runs, &RunListModel::waits_for_room, this,
          [this](const std::filesystem::path& run) { tell(run, /*has_ended=*/false); });
}

RunNotices::~RunNotices() {
  if (bus_) QDBusConnection::disconnectFromBus(bus_->name());
}

void RunNotices::tell(const std::filesystem::path& run, bool has_ended) {
  const int row = runs_.row_of(run);
  if (row < 0) return;
  const service::RunFacts& facts = runs_.facts_of(row);
  const QString title =
      tr("%1: %2", "run and its state").arg(isolated(run_name(run)), state_text(facts));
  emit happened(title);
  if (!settings_.notifies()) return;
  const QString why = has_ended ? runs_.why_ended_of(row)
                                : tr("All steps are done, and the end of the run does not fit the "
                                     "disk. Make room, and the run finishes by itself.");
  emit noticed(title, why);
  show(run, title, why, has_ended && run_group(facts.phase) != RunGroup::failed);
}

bool RunNotices::connect_bus() {
  if (bus_ && bus_->isConnected()) return true;
  const QString address = bus_address();
  if (address.isEmpty()) return false;
  if (bus_) QDBusConnection::disconnectFromBus(bus_->name());
  bus_ = QDBusConnection::connectToBus(address, new_name());
  if (!bus_->isConnected()) return false;
  bus_->connect(kService, kPath, kService, QStringLiteral("ActionInvoked"), this,
                SLOT(take_action(uint, QString)));
  bus_->connect(kService, kPath, kService, QStringLiteral("NotificationClosed"), this,
                SLOT(take_end(uint, uint)));
  return true;
}

void RunNotices::show(const std::filesystem::path& run,
                      const QString& title,
                      const QString& text,
                      bool is_good) {
  if (!connect_bus()) return;
  constexpr uchar kNormal = 1, kCritical = 2;
  QDBusMessage call =
      QDBusMessage::createMethodCall(kService, kPath, kService, QStringLiteral("Notify"));
  // The body is markup; names and reasons are foreign words.
  call << QStringLiteral("Ferry") << uint{0} << QStringLiteral("ferry") << title
       << text.toHtmlEscaped() << QStringList{kOpen, tr("Open the run")}
       << QVariantMap{{"urgency", QVariant::fromValue(is_good ? kNormal : kCritical)},
                      {"desktop-entry", QStringLiteral("ferry")}}
       << int{-1};
  auto* const answer = new QDBusPendingCallWatcher(bus_->asyncCall(call), this);
  connect(answer, &QDBusPendingCallWatcher::finished, this,
          [this, run](QDBusPendingCallWatcher* watcher) {
            const QDBusPendingReply<uint> reply = *watcher;
            // A desktop without notices: the window's status bar says the same.
            if (!reply.isError()) shown_[reply.value()] = run;
            watcher->deleteLater();
          });
}

void RunNotices::take_action(uint id, const QString& action) {
  const auto shown = shown_.find(id);
  if (shown != shown_.end() && action == kOpen) emit chosen(shown->second);
}

void RunNotices::take_end(uint id, uint reason) {
  Q_UNUSED(reason);
  shown_.erase(id);
}

}  // namespace ferry::gui
