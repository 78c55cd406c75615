// How pages use the room of small and large windows.

#include <QLabel>
#include <QScrollArea>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "gui/widgets/aside.h"
#include "gui/widgets/forms/group_layout.h"
#include "gui/widgets/sheet.h"
#include "tests/gui/gui_test.h"

namespace ferry::gui {
namespace {

struct SheetInAnArea {
  SheetInAnArea() {
    auto* const column = new QVBoxLayout(content);
    auto* const words = new QLabel(QStringLiteral("some words of a page ").repeated(40));
    words->setWordWrap(true);
    column->addWidget(words);
    column->addWidget(below);
    area.setWidgetResizable(true);
    area.setWidget(new Sheet(content));
  }
  void resize(int width, int height) {
    area.resize(width, height);
    area.show();
    QCoreApplication::processEvents();
  }
  int em() const { return content->fontMetrics().averageCharWidth(); }

  QWidget* content = new QWidget;
  QLabel* below = new QLabel("below");
  QScrollArea area;
};

TEST(Sheet, FillsANarrowPageAndLiesInTheMiddleOfAWideOne) {
  SheetInAnArea page;
  page.resize(600, 700);
  EXPECT_GT(page.content->width(), 560);
  const int high = page.content->height();
  page.resize(300 * page.em(), 700);
  EXPECT_LE(page.content->width(), 200 * page.em());
  const int left = page.content->x(),
            right = page.area.viewport()->width() - left - page.content->width();
  EXPECT_NEAR(left, right, 1);
  EXPECT_GT(left, 30 * page.em());
  // As high as its words need there.
  EXPECT_LT(page.content->height(), high);
}

TEST(Sheet, IsAsHighAsWhatIsOnItAndScrolls) {
  SheetInAnArea page;
  page.resize(600, 700);
  const int high = page.content->height();
  page.below->setText("one\ntwo\nthree\nfour");
  EXPECT_TRUE(wait_until([&] { return page.content->height() > high; }));
  EXPECT_EQ(page.content->childrenRect().bottom() + 1 +
                page.content->layout()->contentsMargins().bottom(),
            page.content->height());
  page.resize(600, 60);
  EXPECT_GE(page.area.widget()->height(), page.content->geometry().bottom());
  EXPECT_GT(page.area.widget()->height(), page.area.viewport()->height());
}

TEST(Aside, StandsBelowInANarrowPageAndBesideInAWideOne) {
  auto* const main = new QLabel("main");
  auto* const words = new QTextBrowser;
  Aside both(main, words);
  const int em = both.fontMetrics().averageCharWidth();
  both.show();
  both.resize(120 * em, 600);
  QCoreApplication::processEvents();
  EXPECT_GE(words->y(), main->geometry().bottom());
  EXPECT_EQ(words->width(), both.width());
  EXPECT_LT(words->height(), 200);
  both.resize(300 * em, 600);
  QCoreApplication::processEvents();
  EXPECT_GE(words->x(), main->geometry().right());
  EXPECT_EQ(words->height(), both.height());
  EXPECT_GT(main->width(), 3 * words->width());
}

struct Groups {
  explicit Groups(const std::vector<int>& heights) {
    for (const int height : heights) {
      groups.push_back(new QWidget);
      groups.back()->setFixedHeight(height);
      layout->addWidget(groups.back());
    }
    form.show();
  }
  void resize(int chars) {
    form.resize(chars * form.fontMetrics().averageCharWidth(), 2000);
    QCoreApplication::processEvents();
  }

  QWidget form;
  GroupLayout* layout = new GroupLayout(&form);
  std::vector<QWidget*> groups;
};

TEST(GroupLayout, PutsGroupsBesideEachOtherInOrder) {
  Groups three({100, 60, 50});
  three.resize(120);
  EXPECT_EQ(three.groups[1]->x(), three.groups[0]->x());
  EXPECT_GE(three.groups[1]->y(), 100);
  EXPECT_GE(three.layout->heightForWidth(three.form.width()), 210);
  three.resize(230);
  EXPECT_EQ(three.groups[0]->pos(), QPoint(0, 0));
  EXPECT_GT(three.groups[1]->x(), three.groups[0]->geometry().right());
  EXPECT_EQ(three.groups[2]->x(), three.groups[1]->x());
  EXPECT_LT(three.layout->heightForWidth(three.form.width()), 210);
  three.resize(600);
  EXPECT_GT(three.groups[2]->x(), three.groups[1]->geometry().right());
  EXPECT_EQ(three.layout->heightForWidth(three.form.width()), 100);
  // What is hidden takes no column.
  three.groups[0]->hide();
  QCoreApplication::processEvents();
  EXPECT_EQ(three.groups[1]->pos(), QPoint(0, 0));
}

TEST(GroupLayout, MirrorsItsColumnsFromRightToLeft) {
  Groups two({80, 80});
  two.form.setLayoutDirection(Qt::RightToLeft);
  two.resize(230);
  EXPECT_GT(two.groups[0]->x(), two.groups[1]->geometry().right());
}

TEST(GroupLayout, OneGroupIsNoWiderThanItIsRead) {
  Groups one({80});
  one.resize(600);
  EXPECT_LE(one.groups[0]->width(), 200 * one.form.fontMetrics().averageCharWidth());
}

}  // namespace
}  // namespace ferry::gui
