#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QTemporaryDir>
#include <QWheelEvent>

#include "gui/app/main_window.h"
#include "gui/app/palette.h"
#include "tests/gui/gui_test.h"

namespace ferry::gui {
namespace {

TEST(Window, GoesWherePagesAsk) {
  TestHome home;
  AppSettings settings(home.file("app.ini"));
  MainWindow window(settings);
  window.show();
  EXPECT_EQ(window.current_page(), PageId::start);
  for (int page = 0; page < 10; ++page) {
    emit window.navigator().page_wanted(static_cast<PageId>(page));
    EXPECT_EQ(window.current_page(), static_cast<PageId>(page));
  }
}

TEST(Window, TheWheelChangesNothingThatHasNotTheFocus) {
  QTemporaryDir directory;
  AppSettings settings(directory.filePath("app.ini"));
  MainWindow window(settings);
  window.show();
  int n = 0;
  for (int page = 0; page < 10; ++page) {
    window.show_page(static_cast<PageId>(page));
    for (QComboBox* combo : window.page(static_cast<PageId>(page)).findChildren<QComboBox*>()) {
      if (!combo->isVisible() || !combo->isEnabled() || combo->count() < 2) continue;
      const int before = combo->currentIndex();
      QWheelEvent down(QPointF(4, 4), combo->mapToGlobal(QPointF(4, 4)), {}, {0, -120},
                       Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
      QApplication::sendEvent(combo, &down);
      EXPECT_EQ(combo->currentIndex(), before) << combo->objectName().toStdString();
      ++n;
    }
  }
  EXPECT_GT(n, 2);
}

TEST(Palette, TextIsReadable) {
  for (const QPalette& palette : {light_palette(), dark_palette()})
    for (const auto& [ink, ground] : {std::pair{QPalette::Text, QPalette::Base},
                                      {QPalette::Text, QPalette::AlternateBase},
                                      {QPalette::WindowText, QPalette::Window},
                                      {QPalette::ButtonText, QPalette::Button},
                                      {QPalette::HighlightedText, QPalette::Highlight},
                                      {QPalette::Link, QPalette::Base},
                                      {QPalette::Link, QPalette::Window},
                                      {QPalette::PlaceholderText, QPalette::Base},
                                      {QPalette::Mid, QPalette::Window}})
      EXPECT_GE(contrast(palette.color(ink), palette.color(ground)), 4.5)
          << palette.color(ink).name().toStdString() << " on "
          << palette.color(ground).name().toStdString();
}

}  // namespace
}  // namespace ferry::gui
