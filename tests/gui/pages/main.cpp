#include <gtest/gtest.h>

#include <QApplication>

#include "gui/app/palette.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  QApplication app(argc, argv);
  ferry::gui::apply_theme(ferry::gui::Theme::light);
  return RUN_ALL_TESTS();
}
