// Notices of the desktop over a bus of the test's own, to a service that keeps what it is asked.

#include "gui/app/run_notices.h"

#include <gtest/gtest.h>

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusVirtualObject>
#include <QProcess>
#include <QStandardPaths>

#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

const QString kNoticeService = QStringLiteral("org.freedesktop.Notifications");
const QString kNoticePath = QStringLiteral("/org/freedesktop/Notifications");

/** Stands where a desktop's notices are. */
class KeptNotices : public QDBusVirtualObject {
 public:
  QString introspect(const QString&) const override { return {}; }
  bool handleMessage(const QDBusMessage& message, const QDBusConnection& bus) override {
    if (message.member() != QLatin1String("Notify")) return false;
    asked << message.arguments();
    return bus.send(message.createReply(QVariant::fromValue(static_cast<uint>(asked.size()))));
  }
  QList<QVariantList> asked;
};

class RunNoticesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (QStandardPaths::findExecutable("dbus-daemon").isEmpty())
      GTEST_SKIP() << "no dbus-daemon: install the package dbus";
    daemon_.start("dbus-daemon", {"--session", "--nofork", "--print-address"});
    ASSERT_TRUE(daemon_.waitForStarted());
    ASSERT_TRUE(daemon_.waitForReadyRead(20000));
    address_ = daemon_.readLine().trimmed();
    bus_.emplace(QDBusConnection::connectToBus(QString::fromUtf8(address_), "kept-notices"));
    ASSERT_TRUE(bus_->isConnected());
    ASSERT_TRUE(bus_->registerVirtualObject(kNoticePath, &notices_));
    ASSERT_TRUE(bus_->registerService(kNoticeService));
    settings_.set_runs_directory(home_.runs());
  }
  void TearDown() override {
    if (bus_) QDBusConnection::disconnectFromBus("kept-notices");
    daemon_.terminate();
    daemon_.waitForFinished();
  }
  bool see(RunListModel& runs, const fs::path& run, const char* phase) {
    return wait_until([&] {
      runs.look();
      const int row = runs.row_of(run);
      return row >= 0 && runs.facts_of(row).phase == phase;
    });
  }

  TestHome home_;
  AppSettings settings_{home_.file("app.ini")};
  QProcess daemon_;
  QByteArray address_;
  std::optional<QDBusConnection> bus_;
  KeptNotices notices_;
};

TEST_F(RunNoticesTest, TheDesktopIsToldAndAClickOpensTheRun) {
  const WithVariable address("DBUS_SESSION_BUS_ADDRESS", address_);
  Launcher launcher;
  RunListModel runs(settings_, launcher);
  RunNotices told(settings_, runs);
  std::optional<LivingRun> night(home_.runs() / "<b>night");
  const fs::path run = night->path();
  ASSERT_TRUE(see(runs, run, "training"));
  night->end(runs::Phase::failed, {{"exit_reason", "the disk is <full>"}});
  ASSERT_TRUE(see(runs, run, "failed"));
  ASSERT_TRUE(wait_until([&] { return notices_.asked.size() == 1; }));
  const QVariantList& notice = notices_.asked.front();
  ASSERT_EQ(notice.size(), 8);
  EXPECT_EQ(notice[0].toString(), "Ferry");
  EXPECT_TRUE(notice[3].toString().contains("<b>night")) << "a title is plain text";
  EXPECT_EQ(notice[4].toString(), "The disk is &lt;full&gt;") << "a body is markup";
  EXPECT_EQ(notice[5].toStringList().value(0), "default");

  std::filesystem::path chosen;
  QObject::connect(&told, &RunNotices::chosen, &told,
                   [&](const std::filesystem::path& which) { chosen = which; });
  QDBusMessage click = QDBusMessage::createSignal(kNoticePath, kNoticeService, "ActionInvoked");
  click << uint{1} << QStringLiteral("default");
  ASSERT_TRUE(wait_until([&] {
    bus_->send(click);  // the answer to the notice may still be on its way
    return !chosen.empty();
  }));
  EXPECT_EQ(chosen, run);
}

TEST_F(RunNoticesTest, WithoutABusNothingIsAskedAndTheAppSaysItItself) {
  const WithVariable address("DBUS_SESSION_BUS_ADDRESS", "");
  Launcher launcher;
  RunListModel runs(settings_, launcher);
  RunNotices told(settings_, runs);
  QStringList said;
  QObject::connect(&told, &RunNotices::happened, &told, [&](const QString& text) { said << text; });
  std::optional<LivingRun> night(home_.runs() / "night");
  const fs::path run = night->path();
  ASSERT_TRUE(see(runs, run, "training"));
  night->end(runs::Phase::stopped);
  ASSERT_TRUE(see(runs, run, "stopped"));
  ASSERT_TRUE(wait_until([&] { return said.size() == 1; }));
  EXPECT_TRUE(notices_.asked.isEmpty());
}

}  // namespace
}  // namespace ferry::gui
