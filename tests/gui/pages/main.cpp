#include <gtest/gtest.h>

#include "gui/app/palette.h"
#include "tests/gui/pages/monitored_application.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  ferry::gui::test::MonitoredApplication app(argc, argv);
  ferry::gui::apply_theme(ferry::gui::Theme::light);
  return RUN_ALL_TESTS();
}
