#include "gui/widgets/page_parts.h"

#include <QHBoxLayout>
#include <QPainter>
#include <QRegularExpression>
#include <QStyle>

namespace ferry::gui {

namespace {

bool is_dark(const QPalette& palette) {
  return palette.color(QPalette::Base).lightnessF() < 0.5;
}

QColor bar_colour(const QPalette& palette, bool is_error) {
  if (!is_error) return palette.color(QPalette::Highlight);
  return is_dark(palette) ? QColor(0xff, 0x9a, 0x91) : QColor(0xa8, 0x20, 0x1a);
}

}  // namespace

QLabel* make_heading(const QString& text, double step) {
  auto* label = new QLabel(text);
  QFont font = label->font();
  font.setBold(true);
  font.setPointSizeF(font.pointSizeF() * step);
  label->setFont(font);
  return label;
}

QLabel* make_note(const QString& text) {
  auto* label = new QLabel(text);
  label->setWordWrap(true);
  label->setAlignment(Qt::AlignLeading | Qt::AlignTop);
  label->setForegroundRole(QPalette::PlaceholderText);
  return label;
}

QColor mark_colour(const QPalette& palette, int n) {
  static const QColor kLight[] = {{0xcf, 0xe3, 0xff}, {0xff, 0xe2, 0xb8}, {0xd3, 0xf0, 0xcf},
                                  {0xf3, 0xd6, 0xf0}, {0xd2, 0xee, 0xf0}, {0xee, 0xea, 0xb4}};
  static const QColor kDark[] = {{0x1f, 0x45, 0x70}, {0x66, 0x44, 0x10}, {0x24, 0x52, 0x22},
                                 {0x5c, 0x2c, 0x58}, {0x1d, 0x50, 0x54}, {0x52, 0x4e, 0x18}};
  const size_t i = static_cast<size_t>(n) % std::size(kLight);
  return is_dark(palette) ? kDark[i] : kLight[i];
}

Message::Message(QWidget* parent) : QFrame(parent), label_(new QLabel) {
  label_->setWordWrap(true);
  label_->setTextFormat(Qt::PlainText);
  label_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  auto* row = new QHBoxLayout(this);
  const int side = style()->pixelMetric(QStyle::PM_LayoutHorizontalSpacing);
  row->setContentsMargins(std::max(side, 6) * 2, std::max(side, 6), std::max(side, 6),
                          std::max(side, 6));
  row->addWidget(label_, 1);
  hide();
}

void Message::show_text(const QString& kind, const QString& said, bool is_error) {
  // Messages of the service begin with the part of the program that found it.
  static const QRegularExpression kWhere(QStringLiteral("^\\[[a-z_.]+\\] "));
  QString text = said;
  text.remove(kWhere);
  text_ = text;
  is_error_ = is_error;
  label_->setText(kind.isEmpty() ? text : tr("%1: %2").arg(kind, text));
  label_->setAccessibleName(label_->text());
  setVisible(true);
  update();
}

void Message::show_error(const QString& text) {
  show_text(tr("Error"), text, true);
}
void Message::show_warning(const QString& text) {
  show_text(tr("Note"), text, false);
}
void Message::show_done(const QString& text) {
  show_text({}, text, false);
}

void Message::clear() {
  text_.clear();
  is_error_ = false;
  setVisible(false);
}

void Message::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  // The bar at its side; the word says the same without its colour.
  const int width = std::max(3, fontMetrics().height() / 5);
  painter.fillRect(QRect(0, 0, width, height()), bar_colour(palette(), is_error_));
}

}  // namespace ferry::gui
