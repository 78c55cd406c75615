#include "gui/widgets/notice.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>

#include "gui/widgets/curve_style.h"

namespace ferry::gui {

Notice::Notice(QWidget* parent) : QFrame(parent) {
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  setBackgroundRole(QPalette::Base);
  sign_ = new QLabel;
  QFont bold = font();
  bold.setBold(true);
  sign_->setFont(bold);
  sign_->setAlignment(Qt::AlignTop);
  text_ = new QLabel;
  text_->setObjectName("notice_text");
  text_->setWordWrap(true);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  auto* const row = new QHBoxLayout(this);
  row->addWidget(sign_);
  row->addWidget(text_, 1);
  setVisible(false);
}

void Notice::say(Kind kind, const QString& text) {
  setVisible(!text.isEmpty());
  if (kind == kind_ && text == text_->text()) return;
  kind_ = kind;
  text_->setText(text);
  sign_->setText(kind == Kind::warning ? QStringLiteral("!")
                 : kind == Kind::good  ? QStringLiteral("✓")
                                       : QStringLiteral("i"));
  setAccessibleName(text);
  restyle();
}

QString Notice::text() const {
  return isHidden() ? QString() : text_->text();
}

void Notice::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && text_) restyle();
}

void Notice::restyle() {
  QPalette colours = palette();
  colours.setColor(QPalette::WindowText, kind_ == Kind::warning ? warning_colour(palette())
                                         : kind_ == Kind::good  ? curve_colour(2, palette())
                                                                : palette().color(QPalette::Link));
  if (sign_->palette() != colours) sign_->setPalette(colours);
}

}  // namespace ferry::gui
