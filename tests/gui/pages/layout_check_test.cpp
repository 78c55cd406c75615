#include "tests/gui/pages/layout_check.h"

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>

namespace ferry::gui {
namespace {

TEST(LayoutCheck, SeesWhatIsCutAtEitherSideOfItsParent) {
  for (const Qt::LayoutDirection direction : {Qt::LeftToRight, Qt::RightToLeft}) {
    QWidget window;
    window.setLayoutDirection(direction);
    window.resize(400, 300);
    QPushButton button("Ask", &window);
    button.resize(button.sizeHint());
    window.show();
    const int right = window.width() - button.width(), bottom = window.height() - button.height();
    for (const QPoint& place : {QPoint(0, 0), {right, 0}, {0, bottom}, {right, bottom}}) {
      button.move(place);
      EXPECT_TRUE(layout_faults(window).isEmpty()) << layout_faults(window)[0].toStdString();
    }
    for (const QPoint& place : {QPoint(-1, 0), {right + 1, 0}, {0, -1}, {0, bottom + 1}}) {
      button.move(place);
      ASSERT_EQ(layout_faults(window).size(), 1) << place.x() << ", " << place.y();
      EXPECT_TRUE(layout_faults(window)[0].startsWith("outside: QPushButton"));
    }
  }
}

TEST(LayoutCheck, WhatAScrollBarBringsIntoViewIsNotCut) {
  QScrollArea area;
  auto* const page = new QLabel("page");
  page->setMinimumSize(600, 900);
  area.setWidget(page);
  area.resize(400, 300);
  area.show();
  QCoreApplication::processEvents();
  EXPECT_TRUE(layout_faults(area).isEmpty()) << layout_faults(area)[0].toStdString();
  area.setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  QCoreApplication::processEvents();
  ASSERT_EQ(layout_faults(area).size(), 1);
  EXPECT_TRUE(layout_faults(area)[0].startsWith("outside: QLabel"));
}

}  // namespace
}  // namespace ferry::gui
