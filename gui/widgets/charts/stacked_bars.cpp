#include "gui/widgets/charts/stacked_bars.h"

#include <QAccessible>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gui/models/text.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

struct Look {
  QColor colour;
  Qt::BrushStyle pattern;
};

/** Told apart without colour by their patterns; with most colour-blindness by colour, too. */
Look look_of(int kind, bool is_dark) {
  struct Both {
    QRgb light, dark;
    Qt::BrushStyle pattern;
  };
  static constexpr std::array<Both, 12> kLooks = {{
      {0xff2f7fc1, 0xff4c9be0, Qt::NoBrush},
      {0xffe69f00, 0xffe0a21a, Qt::BDiagPattern},
      {0xff00936b, 0xff19b387, Qt::FDiagPattern},
      {0xffcf5a12, 0xffe27a3c, Qt::NoBrush},
      {0xff8fb8dd, 0xff7fa5c9, Qt::DiagCrossPattern},
      {0xffb0b6bf, 0xff7d858f, Qt::Dense6Pattern},
      {0xffc277a5, 0xffcf8ab4, Qt::HorPattern},
      {0xff6a727d, 0xff59616b, Qt::VerPattern},
      {0xffe8d93a, 0xffd9cc45, Qt::CrossPattern},
      {0xff2f7fc1, 0xff4c9be0, Qt::BDiagPattern},
      {0xff00936b, 0xff19b387, Qt::NoBrush},
      {0xffb0b6bf, 0xff7d858f, Qt::FDiagPattern},
  }};
  const Both& both = kLooks[static_cast<size_t>(kind) % kLooks.size()];
  return {QColor::fromRgb(is_dark ? both.dark : both.light), both.pattern};
}

double luminance(const QColor& colour) {
  const auto linear = [](double c) {
    return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) +
         0.0722 * linear(colour.blueF());
}

/** Black or white, whichever is read more easily: at least 4.5 to 1. */
QColor ink_on(const QColor& ground) {
  const double light = luminance(ground) + 0.05;
  return light * light > 1.05 * 0.05 ? QColor(Qt::black) : QColor(Qt::white);
}

}  // namespace

StackedBars::StackedBars(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void StackedBars::set_bars(const QString& name, std::vector<Bar> bars) {
  name_ = name;
  const bool is_same_shape = bars.size() == bars_.size();
  bars_ = std::move(bars);
  if (!is_same_shape ||
      (selected_.bar >= 0 &&
       selected_.segment >=
           static_cast<int>(bars_[static_cast<size_t>(selected_.bar)].segments.size())))
    selected_ = {};
  setAccessibleName(name);
  QStringList lines;
  for (const Bar& bar : bars_) {
    QStringList parts;
    for (const BarSegment& segment : bar.segments)
      parts << QStringLiteral("%1 %2").arg(segment.name, segment.text);
    lines << QStringLiteral("%1: %2 (%3)").arg(bar.name, bar.caption, listed(parts));
  }
  setAccessibleDescription(lines.join(QStringLiteral("; ")));
  if (!is_same_shape) updateGeometry();
  update();
  emit read_out_changed(read_out());
}

void StackedBars::set_legend(bool has_legend) {
  has_legend_ = has_legend;
  updateGeometry();
}

QString StackedBars::read_out() const {
  if (selected_.bar < 0) return {};
  const Bar& bar = bars_[static_cast<size_t>(selected_.bar)];
  if (selected_.segment < 0) return QStringLiteral("%1: %2").arg(bar.name, bar.caption);
  const BarSegment& segment = bar.segments[static_cast<size_t>(selected_.segment)];
  if (bar.segments.size() == 1) return QStringLiteral("%1: %2").arg(bar.name, bar.caption);
  const double share = bar.total() > 0 ? 100 * segment.value / bar.total() : 0;
  return tr("%1: %2 %3, %4 % of it")
      .arg(bar.name, segment.name, segment.text, QString::number(share, 'f', 0));
}

int StackedBars::bar_height() const {
  return fontMetrics().height() + fontMetrics().height() / 3;
}

int StackedBars::row_height() const {
  return fontMetrics().height() + bar_height() + (fontMetrics().height() * 3) / 4;
}

QRect StackedBars::rect_of(int bar) const {
  const int text = fontMetrics().height();
  return {2, bar * row_height() + text + 2, std::max(width() - 4, 1), bar_height()};
}

QRectF StackedBars::rect_of(Place place) const {
  const Bar& bar = bars_[static_cast<size_t>(place.bar)];
  const QRect all = rect_of(place.bar);
  double begin = 0;
  for (int i = 0; i < place.segment; ++i)
    begin += bar.segments[static_cast<size_t>(i)].value;
  const double per_pixel = bar.scale > 0 ? all.width() / bar.scale : 0;
  const double value = bar.segments[static_cast<size_t>(place.segment)].value;
  return {all.x() + begin * per_pixel, static_cast<double>(all.y()),
          std::min(std::max(value * per_pixel, 1.0), all.right() - begin * per_pixel + 1.0),
          static_cast<double>(all.height())};
}

StackedBars::Place StackedBars::place_at(QPoint point) const {
  for (int b = 0; b < static_cast<int>(bars_.size()); ++b) {
    if (!rect_of(b).contains(point)) continue;
    for (int s = 0; s < static_cast<int>(bars_[static_cast<size_t>(b)].segments.size()); ++s)
      if (rect_of(Place{b, s}).contains(point)) return {b, s};
    return {b, -1};
  }
  return {};
}

void StackedBars::select(Place place) {
  if (place == selected_) return;
  selected_ = place;
  update();
  emit read_out_changed(read_out());
  if (!hasFocus() || !QAccessible::isActive()) return;
  QAccessibleValueChangeEvent changed(this, read_out());
  QAccessible::updateAccessibility(&changed);
}

std::vector<StackedBars::LegendItem> StackedBars::legend(int width) const {
  std::vector<LegendItem> items;
  const QFontMetrics metrics = fontMetrics();
  const int swatch = metrics.height(), gap = metrics.averageCharWidth();
  int x = 2, y = static_cast<int>(bars_.size()) * row_height();
  for (const Bar& bar : bars_)
    for (const BarSegment& segment : bar.segments) {
      if (std::ranges::any_of(items,
                              [&](const LegendItem& item) { return item.name == segment.name; }))
        continue;
      const int needed = swatch + gap + metrics.horizontalAdvance(segment.name);
      if (x > 2 && x + needed > width) {
        x = 2;
        y += metrics.lineSpacing() + 4;
      }
      items.push_back({segment.kind, segment.name, {x, y, needed, metrics.height()}});
      x += needed + 3 * gap;
    }
  return items;
}

int StackedBars::heightForWidth(int width) const {
  const int bars = static_cast<int>(bars_.size()) * row_height();
  if (!has_legend_) return bars;
  const auto items = legend(width);
  return items.empty() ? bars : items.back().rect.bottom() + 4;
}

QSize StackedBars::sizeHint() const {
  const int width = 60 * fontMetrics().averageCharWidth();
  return {width, heightForWidth(width)};
}

QSize StackedBars::minimumSizeHint() const {
  const int width = 36 * fontMetrics().averageCharWidth();
  return {width, heightForWidth(std::max(width, this->width()))};
}

void StackedBars::paint_segment(QPainter& painter,
                                const QRectF& rect,
                                const BarSegment& segment) const {
  const Look look = look_of(segment.kind, has_dark_base(palette()));
  painter.fillRect(rect, look.colour);
  const QColor ink = ink_on(look.colour);
  if (look.pattern != Qt::NoBrush) {
    QColor faint = ink;
    faint.setAlphaF(0.28F);
    painter.fillRect(rect, QBrush(faint, look.pattern));
  }
  painter.setPen(palette().color(QPalette::Base));
  painter.drawLine(rect.topRight(), rect.bottomRight());
}

void StackedBars::paint_limit(QPainter& painter, const QRect& rect, const Bar& bar) const {
  if (bar.limit <= 0 || bar.limit > bar.scale) return;
  const double x = rect.x() + rect.width() * bar.limit / bar.scale;
  const QColor ink = palette().color(QPalette::WindowText);
  painter.setPen(QPen(ink, 2, bar.is_over() ? Qt::SolidLine : Qt::DashLine));
  const double over = fontMetrics().height() / 4.0;
  painter.drawLine(QPointF(x, rect.top() - 1), QPointF(x, rect.bottom() + over));
  if (!bar.is_over()) return;
  // The part beyond the limit is hatched.
  const double end = rect.x() + rect.width() * std::min(bar.total() / bar.scale, 1.0);
  painter.fillRect(QRectF(x, rect.bottom() - over, end - x, over), QBrush(ink, Qt::Dense3Pattern));
}

void StackedBars::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.setLayoutDirection(Qt::LeftToRight);  // as axes go in every language
  const QFontMetrics metrics = fontMetrics();
  const QFont bold = bold_font(font());
  for (int b = 0; b < static_cast<int>(bars_.size()); ++b) {
    const Bar& bar = bars_[static_cast<size_t>(b)];
    const QRect rect = rect_of(b);
    const QRect title(rect.x(), b * row_height(), rect.width(), metrics.height());
    painter.setPen(palette().color(QPalette::WindowText));
    painter.setFont(bold);
    draw_words(painter, title, Qt::AlignLeft | Qt::AlignVCenter, bar.name);
    const int taken =
        QFontMetrics(bold).horizontalAdvance(bar.name) + 2 * metrics.averageCharWidth();
    painter.setFont(bar.is_over() ? bold : font());
    draw_words(
        painter, title.adjusted(taken, 0, 0, 0), Qt::AlignRight | Qt::AlignVCenter,
        painter.fontMetrics().elidedText(bar.caption, Qt::ElideRight, title.width() - taken));
    painter.setFont(font());
    painter.fillRect(rect, palette().color(QPalette::Base));
    for (int s = 0; s < static_cast<int>(bar.segments.size()); ++s) {
      const BarSegment& segment = bar.segments[static_cast<size_t>(s)];
      const QRectF place = rect_of(Place{b, s});
      paint_segment(painter, place, segment);
      if (bar.segments.size() == 1 && !has_legend_) continue;
      const QString both = QStringLiteral("%1 %2").arg(segment.name, segment.text);
      const int room = static_cast<int>(place.width()) - metrics.averageCharWidth();
      const QString shown = metrics.horizontalAdvance(both) <= room           ? both
                            : metrics.horizontalAdvance(segment.text) <= room ? segment.text
                                                                              : QString();
      if (shown.isEmpty()) continue;
      const Look look = look_of(segment.kind, has_dark_base(palette()));
      const int text_width = metrics.horizontalAdvance(shown);
      const QRectF plate(place.center().x() - text_width / 2.0 - 2, place.top() + 1, text_width + 4,
                         place.height() - 2);
      if (look.pattern != Qt::NoBrush) painter.fillRect(plate, look.colour);
      painter.setPen(ink_on(look.colour));
      draw_words(painter, place.toRect(), Qt::AlignCenter, shown);
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(palette().color(QPalette::Mid));
    painter.drawRect(rect.adjusted(0, 0, -1, -1));
    paint_limit(painter, rect, bar);
  }
  if (has_legend_)
    for (const LegendItem& item : legend(width())) {
      const QRect swatch(item.rect.x(), item.rect.y() + 2, metrics.height() - 4,
                         metrics.height() - 4);
      paint_segment(painter, swatch, {item.kind, {}, 0, {}});
      painter.setPen(palette().color(QPalette::Mid));
      painter.drawRect(swatch.adjusted(0, 0, -1, -1));
      painter.setPen(palette().color(QPalette::WindowText));
      draw_words(painter,
                 item.rect.adjusted(metrics.height() + metrics.averageCharWidth() / 2, 0,
                                    metrics.averageCharWidth() * 2, 0),
                 Qt::AlignLeft | Qt::AlignVCenter, item.name);
    }
  if (selected_.bar < 0) return;
  const QRectF mark = selected_.segment >= 0 ? rect_of(selected_) : QRectF(rect_of(selected_.bar));
  painter.setPen(QPen(palette().color(QPalette::WindowText), hasFocus() ? 3 : 2));
  painter.drawRect(mark.adjusted(0, 0, -1, -1));
}

void StackedBars::mouseMoveEvent(QMouseEvent* event) {
  select(place_at(event->pos()));
}

void StackedBars::leaveEvent(QEvent* /*event*/) {
  if (!hasFocus()) select({});
}

void StackedBars::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  if (selected_.bar < 0 && !bars_.empty()) select({0, bars_.front().segments.empty() ? -1 : 0});
  update();
}

void StackedBars::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  select({});
  update();
}

void StackedBars::keyPressEvent(QKeyEvent* event) {
  if (bars_.empty()) return QWidget::keyPressEvent(event);
  Place to = selected_.bar < 0 ? Place{0, 0} : selected_;
  const auto last_of = [&](int bar) {
    return static_cast<int>(bars_[static_cast<size_t>(bar)].segments.size()) - 1;
  };
  switch (event->key()) {
    case Qt::Key_Left:
      to.segment = std::max(to.segment - 1, 0);
      break;
    case Qt::Key_Right:
      ++to.segment;
      break;
    case Qt::Key_Up:
      to.bar = std::max(to.bar - 1, 0);
      break;
    case Qt::Key_Down:
      to.bar = std::min(to.bar + 1, static_cast<int>(bars_.size()) - 1);
      break;
    case Qt::Key_Home:
      to.segment = 0;
      break;
    case Qt::Key_End:
      to.segment = last_of(to.bar);
      break;
    default:
      return QWidget::keyPressEvent(event);
  }
  to.segment = std::min(to.segment, last_of(to.bar));
  select(to);
}

bool StackedBars::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString text = read_out();
    if (text.isEmpty())
      QToolTip::hideText();
    else
      QToolTip::showText(help->globalPos(), text, this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace ferry::gui
