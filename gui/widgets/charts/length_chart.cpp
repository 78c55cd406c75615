#include "gui/widgets/charts/length_chart.h"

#include <QKeyEvent>
#include <QPainter>
#include <algorithm>

namespace ferry::gui {

LengthChart::LengthChart(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void LengthChart::set_numbers(const service::PreviewNumbers& numbers, int64_t max_length) {
  bins_ = numbers.lengths;
  max_length_ = max_length;
  n_all_ = numbers.n_sequences;
  n_most_ = bins_.counts.empty() ? 0 : *std::ranges::max_element(bins_.counts);
  selected_ = -1;
  const auto most = std::ranges::max_element(bins_.counts);
  const int64_t bin = most - bins_.counts.begin();
  setAccessibleName(tr("Texts by their number of tokens"));
  setAccessibleDescription(
      bins_.counts.empty() ? tr("no texts")
                           : tr("%1 texts, the longest of %2 tokens; most of them, %3, of %4 to %5")
                                 .arg(n_all_)
                                 .arg(numbers.n_longest)
                                 .arg(n_most_)
                                 .arg(bin * bins_.width + 1)
                                 .arg((bin + 1) * bins_.width));
  update();
}

QString LengthChart::read_out() const {
  if (selected_ < 0) return {};
  const int64_t n = bins_.counts[static_cast<size_t>(selected_)];
  const double share =
      n_all_ > 0 ? 100.0 * static_cast<double>(n) / static_cast<double>(n_all_) : 0;
  return tr("%1 to %2 tokens: %3 texts, %4 %")
      .arg(selected_ * bins_.width + 1)
      .arg((selected_ + 1) * bins_.width)
      .arg(n)
      .arg(QString::number(share, 'f', 1));
}

QSize LengthChart::sizeHint() const {
  return {60 * fontMetrics().averageCharWidth(), 14 * fontMetrics().height()};
}

QSize LengthChart::minimumSizeHint() const {
  return {30 * fontMetrics().averageCharWidth(), 8 * fontMetrics().height()};
}

QRect LengthChart::plot() const {
  const QFontMetrics metrics = fontMetrics();
  const int left = metrics.horizontalAdvance(QString::number(n_most_)) + 12;
  return rect().adjusted(left, metrics.height(), -metrics.averageCharWidth() * 2,
                         -2 * metrics.height() - 8);
}

void LengthChart::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.setLayoutDirection(Qt::LeftToRight);  // as axes go in every language
  const QFontMetrics metrics = fontMetrics();
  const QRect area = plot();
  painter.fillRect(area, palette().color(QPalette::Base));
  const QColor ink = palette().color(QPalette::WindowText), mid = palette().color(QPalette::Mid);
  painter.setPen(mid);
  painter.drawLine(area.bottomLeft(), area.bottomRight());
  if (bins_.counts.empty() || n_most_ == 0) {
    painter.setPen(ink);
    painter.drawText(area, Qt::AlignCenter, tr("no texts"));
    return;
  }
  const auto n = static_cast<int>(bins_.counts.size());
  const double step = static_cast<double>(area.width()) / n;
  for (int i = 0; i < n; ++i) {
    const double height = area.height() *
                          static_cast<double>(bins_.counts[static_cast<size_t>(i)]) /
                          static_cast<double>(n_most_);
    const QRectF bar(area.x() + i * step + 1, area.bottom() - height, std::max(step - 2, 1.0),
                     height);
    painter.fillRect(bar, palette().color(QPalette::Highlight));
    if (i != selected_) continue;
    painter.setPen(QPen(ink, 2));
    painter.drawRect(QRectF(bar.x(), area.y(), bar.width(), area.height()));
  }
  painter.setPen(ink);
  const QRect left(0, area.y() - metrics.height() / 2, area.x() - 6, metrics.height());
  painter.drawText(left, Qt::AlignRight | Qt::AlignVCenter, QString::number(n_most_));
  painter.drawText(left.translated(0, area.height()), Qt::AlignRight | Qt::AlignVCenter, "0");
  // Labels of some bins' ends, as many as have room.
  const int label = metrics.horizontalAdvance(QString::number(n * bins_.width)) * 2;
  const int each = std::max(1, static_cast<int>(label / std::max(step, 1.0)) + 1);
  for (int i = each; i <= n; i += each) {
    const int x = area.x() + static_cast<int>(i * step);
    painter.drawLine(x, area.bottom(), x, area.bottom() + 3);
    painter.drawText(QRect(x - label, area.bottom() + 4, 2 * label, metrics.height()),
                     Qt::AlignHCenter, QString::number(i * bins_.width));
  }
  painter.drawText(
      QRect(area.x(), area.bottom() + 4 + metrics.height(), area.width(), metrics.height()),
      Qt::AlignHCenter, tr("tokens"));
  const double at = static_cast<double>(max_length_) / static_cast<double>(n * bins_.width);
  if (at > 1) return;
  const double x = area.x() + area.width() * at;
  painter.setPen(QPen(ink, 2, Qt::DashLine));
  painter.drawLine(QPointF(x, area.y()), QPointF(x, area.bottom()));
  painter.drawText(QRectF(x - 30 * metrics.averageCharWidth() - 6, 0,
                          30 * metrics.averageCharWidth(), metrics.height()),
                   Qt::AlignRight, tr("cut at %1").arg(max_length_));
}

void LengthChart::select(int bin) {
  if (bin == selected_) return;
  selected_ = bin;
  update();
  emit read_out_changed(read_out());
}

void LengthChart::mouseMoveEvent(QMouseEvent* event) {
  const QRect area = plot();
  const auto n = static_cast<int>(bins_.counts.size());
  if (n == 0 || !area.contains(event->pos())) return select(-1);
  select(std::clamp((event->pos().x() - area.x()) * n / std::max(area.width(), 1), 0, n - 1));
}

void LengthChart::leaveEvent(QEvent* /*event*/) {
  if (!hasFocus()) select(-1);
}

void LengthChart::keyPressEvent(QKeyEvent* event) {
  const auto n = static_cast<int>(bins_.counts.size());
  if (n > 0 && event->key() == Qt::Key_Left) return select(std::max(selected_ - 1, 0));
  if (n > 0 && event->key() == Qt::Key_Right) return select(std::min(selected_ + 1, n - 1));
  QWidget::keyPressEvent(event);
}

void LengthChart::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  if (selected_ < 0 && !bins_.counts.empty()) select(0);
}

void LengthChart::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  select(-1);
}

}  // namespace ferry::gui
