#include "gui/widgets/sheet.h"

#include <QEvent>
#include <QLayout>
#include <QPainter>
#include <algorithm>

namespace ferry::gui {

Sheet::Sheet(QWidget* content, QWidget* parent) : QWidget(parent), content_(content) {
  content_->setParent(this);
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

int Sheet::margin() const {
  return fontMetrics().height() / 2;
}

int Sheet::content_width(int width) const {
  constexpr int kWidestChars = 200;
  const int room = width - 2 * margin();
  // On a very large screen cards and columns beside each other have some more.
  const int most = std::max(kWidestChars * fontMetrics().averageCharWidth(), room * 2 / 5);
  return std::max(std::min(room, most), content_->minimumSizeHint().width());
}

int Sheet::content_height(int content_width) const {
  const QLayout& layout = *content_->layout();
  return layout.hasHeightForWidth() ? layout.totalHeightForWidth(content_width)
                                    : layout.totalSizeHint().height();
}

int Sheet::heightForWidth(int width) const {
  return content_height(content_width(width)) + 2 * margin();
}

QSize Sheet::sizeHint() const {
  const QSize hint = content_->sizeHint();
  return {hint.width() + 2 * margin(), heightForWidth(hint.width() + 2 * margin())};
}

/** The height follows from the width that it gets. */
QSize Sheet::minimumSizeHint() const {
  return {content_->minimumSizeHint().width() + 2 * margin(), 0};
}

void Sheet::place() {
  const int width = content_width(this->width());
  const QRect sheet((this->width() - width) / 2, margin(), width, content_height(width));
  if (content_->geometry() == sheet) return;
  content_->setGeometry(sheet);
  update();
}

bool Sheet::event(QEvent* event) {
  // Words came or went. The scroll area looks at this event, too.
  if (event->type() == QEvent::LayoutRequest) {
    updateGeometry();
    place();
  }
  return QWidget::event(event);
}

void Sheet::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  place();
}

void Sheet::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  QColor edge = palette().color(QPalette::Mid);
  constexpr int kFaint = 90;  // of 255
  edge.setAlpha(kFaint);
  painter.setPen(edge);
  painter.setBrush(palette().color(QPalette::Base));
  const double radius = margin() / 2.0;
  painter.drawRoundedRect(QRectF(content_->geometry()).adjusted(-0.5, -0.5, 0.5, 0.5), radius,
                          radius);
}

}  // namespace ferry::gui
