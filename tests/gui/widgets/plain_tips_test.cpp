// Tooltips: paths and names of others are shown letter by letter, what is our own HTML as HTML.

#include "gui/widgets/plain_tips.h"

#include <gtest/gtest.h>

#include <QtWidgets>

namespace ferry::gui {
namespace {

const QString kForeign = QStringLiteral("<b>runs</b><img src='/etc/passwd'>");

QString shown_by(QWidget& widget, const QPoint& at) {
  QToolTip::hideText();
  QHelpEvent event(QEvent::ToolTip, at, widget.mapToGlobal(at));
  QApplication::sendEvent(&widget, &event);
  return QToolTip::text();
}

/** What a reader sees of a tip. */
QString read(const QString& tip) {
  return Qt::mightBeRichText(tip) ? QTextDocumentFragment::fromHtml(tip).toPlainText() : tip;
}

TEST(PlainTips, ShowWordsOfOthersAsTheyStand) {
  install_plain_tips(*qApp);
  QLabel label(QStringLiteral("run"));
  label.resize(80, 20);
  label.show();
  label.setToolTip(kForeign);
  EXPECT_EQ(read(shown_by(label, {5, 5})), kForeign);
  label.setToolTip(QStringLiteral("a < b"));
  EXPECT_EQ(read(shown_by(label, {5, 5})), QStringLiteral("a < b"));
  allow_rich_tip(label);
  label.setToolTip(kForeign);
  EXPECT_EQ(shown_by(label, {5, 5}), kForeign);

  QTableWidget table(1, 1);
  table.setItem(0, 0, new QTableWidgetItem(QStringLiteral("model")));
  table.item(0, 0)->setToolTip(kForeign);
  table.setHorizontalHeaderItem(0, new QTableWidgetItem(QStringLiteral("run")));
  table.horizontalHeaderItem(0)->setToolTip(kForeign);
  table.resize(300, 200);
  table.show();
  EXPECT_EQ(read(shown_by(*table.viewport(), {5, 5})), kForeign);
  EXPECT_EQ(read(shown_by(*table.horizontalHeader()->viewport(), {5, 5})), kForeign);
}

}  // namespace
}  // namespace ferry::gui
