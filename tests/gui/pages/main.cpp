#include <gtest/gtest.h>

#include "gui/app/palette.h"
#include "tests/gui/pages/monitored_application.h"

namespace {

using ferry::gui::test::MonitoredApplication;

/** No test may find a handler that holds the window up. */
class HandlersAreQuick : public testing::EmptyTestEventListener {
 public:
  explicit HandlersAreQuick(MonitoredApplication& app) : app_(app) {}
  void OnTestStart(const testing::TestInfo& test) override {
    Q_UNUSED(test);
    app_.watch();
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    for (const QString& slow : app_.stop_watching())
      ADD_FAILURE() << test.test_suite_name() << "." << test.name() << ": " << slow.toStdString();
  }

 private:
  MonitoredApplication& app_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  MonitoredApplication app(argc, argv);
  ferry::gui::apply_theme(ferry::gui::Theme::light);
  testing::UnitTest::GetInstance()->listeners().Append(new HandlersAreQuick(app));
  return RUN_ALL_TESTS();
}
