#include <gtest/gtest.h>

#include <mutex>

#include "gui/app/palette.h"
#include "tests/gui/pages/monitored_application.h"

namespace {

using ferry::gui::MonitoredApplication;

/** No test may find a handler that holds the window up, where times are judged. A machine that is
 * paused or shared adds to a thread's processor time. */
class HandlersAreQuick : public testing::EmptyTestEventListener {
 public:
  explicit HandlersAreQuick(MonitoredApplication& app) : app_(app) {}
  void OnTestStart(const testing::TestInfo& test) override {
    Q_UNUSED(test);
    app_.watch();
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    const QStringList slow = app_.stop_watching();
    if (!ferry::gui::judges_times()) return;
    for (const QString& turn : slow)
      ADD_FAILURE() << test.test_suite_name() << "." << test.name() << ": " << turn.toStdString();
  }

 private:
  MonitoredApplication& app_;
};

/** Nothing that a page does may make Qt warn. */
class QtIsSilent : public testing::EmptyTestEventListener {
 public:
  QtIsSilent() { before_ = qInstallMessageHandler(take); }
  void OnTestStart(const testing::TestInfo& test) override {
    Q_UNUSED(test);
    const std::lock_guard lock(mutex_);
    said_.clear();
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    const std::lock_guard lock(mutex_);
    for (const QString& text : said_)
      ADD_FAILURE() << test.test_suite_name() << "." << test.name()
                    << ": Qt says: " << text.toStdString();
  }

 private:
  static void take(QtMsgType type, const QMessageLogContext& where, const QString& text) {
    // The screen that is not there says so.
    if (type != QtDebugMsg && type != QtInfoMsg &&
        !text.startsWith("This plugin does not support")) {
      const std::lock_guard lock(mutex_);
      said_ << text;
    }
    before_(type, where, text);
  }

  static inline std::mutex mutex_;  // threads warn, too
  static inline QStringList said_;
  static inline QtMessageHandler before_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  qputenv("HF_HUB_OFFLINE", "1");  // tests that need a hub start their own
  MonitoredApplication app(argc, argv);
  ferry::gui::apply_theme(ferry::gui::Theme::light);
  testing::UnitTest::GetInstance()->listeners().Append(new HandlersAreQuick(app));
  testing::UnitTest::GetInstance()->listeners().Append(new QtIsSilent);
  return RUN_ALL_TESTS();
}
