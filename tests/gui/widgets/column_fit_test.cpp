#include "gui/widgets/column_fit.h"

#include <QHeaderView>
#include <QScrollBar>
#include <QTableWidget>
#include <QTreeWidget>

#include "tests/gui/gui_test.h"
#include "tests/gui/pages/fill_check.h"

namespace ferry::gui {
namespace {

struct FittedTable {
  explicit FittedTable(int n_columns, const ColumnFit::Rule& rule) : table(3, n_columns) {
    for (int row = 0; row < 3; ++row)
      for (int column = 0; column < n_columns; ++column)
        table.setItem(row, column, new QTableWidgetItem(QStringLiteral("cell %1").arg(column)));
    new ColumnFit(&table, rule);
  }
  int width(int column) const { return table.columnWidth(column); }
  QStringList faults_at(int n_pixels) {
    table.resize(n_pixels, 300);
    table.show();
    QCoreApplication::processEvents();
    return column_faults(table);
  }

  QTableWidget table;
};

TEST(ColumnFit, FillsTheViewAtEverySizeWithTheNamedColumn) {
  FittedTable one(4, {.rest = 2});
  EXPECT_EQ(one.faults_at(500), QStringList());
  const int short_one = one.width(0), rest = one.width(2);
  EXPECT_EQ(one.faults_at(2400), QStringList());
  EXPECT_EQ(one.width(0), short_one);
  EXPECT_GT(one.width(2), rest + 1800);
  EXPECT_EQ(one.faults_at(360), QStringList());
}

TEST(ColumnFit, ColumnsShareTheRestEqually) {
  FittedTable shared(4, {.rest = 1, .n_rest = ColumnFit::kToTheLast});
  EXPECT_EQ(shared.faults_at(1001), QStringList());
  EXPECT_NEAR(shared.width(1), shared.width(3), 1);
  EXPECT_GT(shared.width(1), shared.width(0));
}

TEST(ColumnFit, FollowsItsContents) {
  FittedTable filled(3, {.rest = 2});
  EXPECT_EQ(filled.faults_at(700), QStringList());
  const int before = filled.width(0);
  filled.table.item(1, 0)->setText(QString(30, 'w'));
  QCoreApplication::processEvents();
  EXPECT_GT(filled.width(0), 2 * before);
  EXPECT_EQ(column_faults(filled.table), QStringList());
  // A value that changes in place makes no column jump.
  const int wide = filled.width(0);
  filled.table.item(1, 0)->setText("w");
  QCoreApplication::processEvents();
  EXPECT_EQ(filled.width(0), wide);
  filled.table.setRowCount(1);
  QCoreApplication::processEvents();
  EXPECT_LT(filled.width(0), wide);
  // Rows that need a scroll bar leave less width.
  filled.table.setRowCount(200);
  QCoreApplication::processEvents();
  EXPECT_TRUE(filled.table.verticalScrollBar()->isVisible());
  EXPECT_EQ(column_faults(filled.table), QStringList());
}

TEST(ColumnFit, ANarrowViewCutsTheWidestAndThenScrolls) {
  FittedTable narrow(3, {.rest = 2});
  narrow.table.item(0, 0)->setText(QString(60, 'w'));
  EXPECT_EQ(narrow.faults_at(1200), QStringList());
  const int wide = narrow.width(0), other = narrow.width(1);
  EXPECT_EQ(narrow.faults_at(360), QStringList());
  EXPECT_LT(narrow.width(0), wide);
  EXPECT_EQ(narrow.width(1), other);
  EXPECT_EQ(narrow.table.horizontalScrollBar()->maximum(), 0);
  narrow.faults_at(120);
  EXPECT_GT(narrow.table.horizontalScrollBar()->maximum(), 0);
}

TEST(ColumnFit, SparesColumnsAndShowsThemAgain) {
  FittedTable spared(4, {.rest = 0, .whole_chars = 40, .spared = {3, 1}});
  spared.table.item(0, 0)->setText(QString(30, 'w'));
  EXPECT_EQ(spared.faults_at(1000), QStringList());
  EXPECT_FALSE(spared.table.isColumnHidden(3));
  EXPECT_EQ(spared.faults_at(spared.table.fontMetrics().averageCharWidth() * 55), QStringList());
  EXPECT_TRUE(spared.table.isColumnHidden(3));
  EXPECT_EQ(spared.faults_at(1000), QStringList());
  EXPECT_FALSE(spared.table.isColumnHidden(3));
}

TEST(ColumnFit, AllColumnsShareWhatTheRestHaveNoUseFor) {
  FittedTable wide(4, {.rest = 1, .most_rest_chars = 40});
  EXPECT_EQ(wide.faults_at(360), QStringList());
  const int most = 40 * wide.table.fontMetrics().averageCharWidth(), shorter = wide.width(0);
  EXPECT_LT(wide.width(1), most);
  EXPECT_EQ(wide.faults_at(3000), QStringList());
  const int grown = wide.width(0) - shorter;
  EXPECT_GT(grown, 400);
  EXPECT_NEAR(wide.width(1), most + grown, 4);
  EXPECT_EQ(wide.faults_at(360), QStringList());
  EXPECT_EQ(wide.width(0), shorter);
}

TEST(ColumnFit, AColumnThatWasDraggedKeepsItsWidth) {
  QTreeWidget tree;
  tree.setHeaderLabels({"a", "b", "c"});
  new QTreeWidgetItem(&tree, {"one", "two", "three"});
  new ColumnFit(&tree, {.rest = 1});
  tree.resize(600, 200);
  tree.show();
  QCoreApplication::processEvents();
  tree.header()->resizeSection(0, 170);
  QCoreApplication::processEvents();
  tree.resize(900, 200);
  QCoreApplication::processEvents();
  EXPECT_EQ(tree.columnWidth(0), 170);
  EXPECT_EQ(column_faults(tree), QStringList());
  // Another table takes the widths that were chosen once.
  const std::vector<int> chosen = tree.findChild<ColumnFit*>()->chosen_widths();
  FittedTable again(3, {.rest = 1});
  again.table.findChild<ColumnFit*>()->choose_widths(chosen);
  EXPECT_EQ(again.faults_at(600), QStringList());
  EXPECT_EQ(again.width(0), 170);
}

TEST(FillCheck, FindsABandAndWhatIsBeyondTheEdge) {
  QTableWidget table(2, 2);
  table.setObjectName("bare");
  table.resize(800, 200);
  table.show();
  QCoreApplication::processEvents();
  ASSERT_EQ(column_faults(table).size(), 2);
  EXPECT_TRUE(column_faults(table)[0].contains("header of \"bare\""));
  table.horizontalHeader()->setDefaultAlignment(Qt::AlignLeading);
  ASSERT_EQ(column_faults(table).size(), 1);
  EXPECT_TRUE(column_faults(table)[0].contains("bare"));
  table.setColumnWidth(0, 900);
  EXPECT_EQ(column_faults(table).size(), 1);
  table.horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  EXPECT_EQ(column_faults(table), QStringList());
}

}  // namespace
}  // namespace ferry::gui
