#include "gui/widgets/notice.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QRegularExpression>
#include <algorithm>

#include "gui/widgets/charts/curve_style.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

Notice::Notice(QWidget* parent) : QFrame(parent) {
  sign_ = new TextLabel;
  sign_->setFont(heading_font(font(), 1));
  sign_->setAlignment(Qt::AlignCenter);
  // The same room for every sign: the text beside it stays where it is.
  sign_->setMinimumWidth(sign_->fontMetrics().boundingRect(QStringLiteral("✕✕")).width());
  text_ = new TextLabel;
  text_->setObjectName("notice_text");
  text_->setWordWrap(true);
  text_->setTextFormat(Qt::PlainText);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  text_->setFocusPolicy(Qt::ClickFocus);  // no stop of the tab key: it would show no focus
  auto* const row = new QHBoxLayout(this);
  const int space = fontMetrics().averageCharWidth();
  row->setContentsMargins(2 * space, space, space, space);
  row->addWidget(sign_);
  row->addWidget(text_, 1);
  setVisible(false);
}

void Notice::say(Kind kind, const QString& said) {
  // Messages of the service begin with the part of the program that found it.
  static const QRegularExpression kWhere(QStringLiteral("^\\[[a-z_.]+\\] "));
  QString text = said;
  text.remove(kWhere);
  setVisible(!text.isEmpty());
  if (kind == kind_ && text == text_->text()) return;
  kind_ = kind;
  text_->setText(text);
  const bool is_bad = kind == Kind::error;
  sign_->setText(is_bad                  ? QStringLiteral("✕")
                 : kind == Kind::warning ? QStringLiteral("!")
                 : kind == Kind::good    ? QStringLiteral("✓")
                                         : QStringLiteral("i"));
  setAccessibleName(is_bad && !text.isEmpty() ? tr("Error: %1").arg(text) : text);
  restyle();
}

void Notice::keep_room(int n_lines) {
  n_lines_ = n_lines;
  QSizePolicy policy = sizePolicy();
  policy.setRetainSizeWhenHidden(true);
  setSizePolicy(policy);
  const QMargins margins = layout()->contentsMargins();
  setMinimumHeight(n_lines * fontMetrics().lineSpacing() + margins.top() + margins.bottom());
}

QString Notice::text() const {
  return isHidden() ? QString() : text_->text();
}

QHBoxLayout* title_with(const QString& title, const QString& purpose, Notice& notice) {
  auto* const row = new QHBoxLayout;
  row->setSpacing(notice.fontMetrics().height());
  auto* const words = new QVBoxLayout;
  words->setSpacing(notice.fontMetrics().height() / 4);
  words->addWidget(heading_label(title, kTitle));
  words->addWidget(quiet_label(purpose));
  words->addStretch(1);
  row->addLayout(words);
  notice.keep_room();
  row->addWidget(&notice, 1);
  return row;
}

QHBoxLayout* heading_with(const QString& title, Notice& notice) {
  auto* const row = new QHBoxLayout;
  row->setSpacing(notice.fontMetrics().height());
  // The room that is kept lies above the heading, and the part follows it.
  row->addWidget(heading_label(title), 0, Qt::AlignBottom);
  notice.keep_room();
  row->addWidget(&notice, 1);
  return row;
}

QColor Notice::colour() const {
  switch (kind_) {
    case Kind::error:
      return error_colour(palette());
    case Kind::warning:
      return warning_colour(palette());
    case Kind::good:
      return curve_colour(2, palette());
    case Kind::info:
      return palette().color(QPalette::Link);
  }
  return {};
}

void Notice::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && text_) restyle();
  if (event->type() == QEvent::FontChange && n_lines_ > 0) keep_room(n_lines_);
}

void Notice::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  // The bar at its side; the sign says the same without its colour.
  const int width = std::max(3, fontMetrics().height() / 5);
  const int left = isRightToLeft() ? rect().right() + 1 - width : 0;
  painter.fillRect(QRect(left, 0, width, height()), colour());
}

void Notice::restyle() {
  QPalette colours = palette();
  colours.setColor(QPalette::WindowText, colour());
  if (sign_->palette() != colours) sign_->setPalette(colours);
  update();
}

}  // namespace ferry::gui
