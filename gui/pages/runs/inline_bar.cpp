#include "gui/pages/runs/inline_bar.h"
#include "gui/widgets/look.h"

#include <QtWidgets>

namespace ferry::gui {

InlineBar::InlineBar(QWidget* parent)
    : QFrame(parent),
      text_(new TextLabel),
      number_(new QSpinBox),
      yes_(new QPushButton),
      no_(new QPushButton) {
  setObjectName("inline_bar");
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  setBackgroundRole(QPalette::AlternateBase);
  text_->setObjectName("inline_text");
  text_->setWordWrap(true);
  text_->setTextFormat(Qt::PlainText);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  text_->setFocusPolicy(Qt::ClickFocus);
  text_->setBuddy(number_);
  number_->setObjectName("inline_number");
  number_->setRange(1, 1'000'000'000);
  number_->setGroupSeparatorShown(true);
  number_->setFocusPolicy(Qt::StrongFocus);
  number_->setAccessibleName(tr("Steps"));
  yes_->setObjectName("inline_yes");
  no_->setObjectName("inline_no");
  auto* row = new QHBoxLayout(this);
  row->addWidget(text_, 1);
  row->addWidget(number_);
  row->addWidget(yes_);
  row->addWidget(no_);
  connect(yes_, &QPushButton::clicked, this, [this] {
    const std::function<void()> act = std::move(act_);
    answered_.start();
    hide();
    if (act) act();
  });
  connect(no_, &QPushButton::clicked, this, &QWidget::hide);
  hide();
}

void InlineBar::show_with(const QString& text,
                          const QString& yes,
                          const QString& no,
                          bool has_number) {
  text_->setText(text);
  setAccessibleName(text);
  number_->setVisible(has_number);
  yes_->setVisible(!yes.isEmpty());
  yes_->setText(yes);
  no_->setText(no);
  show();
  // The second click of a double click is no answer to the question that the first one brought.
  if (!answered_.isValid() || answered_.elapsed() > QApplication::doubleClickInterval()) return;
  yes_->setEnabled(false);
  QTimer::singleShot(QApplication::doubleClickInterval() + 50, yes_,
                     [this] { yes_->setEnabled(true); });
}

void InlineBar::tell(const QString& text) {
  act_ = nullptr;
  show_with(text, {}, tr("Close"), false);
}

void InlineBar::tell(const QString& text, const QString& action, std::function<void()> act) {
  act_ = std::move(act);
  show_with(text, action, tr("Close"), false);
}

void InlineBar::ask(const QString& text, const QString& yes, std::function<void()> act) {
  act_ = std::move(act);
  show_with(text, yes, tr("Cancel"), false);
  no_->setFocus();
}

void InlineBar::ask_number(const QString& text,
                           int value,
                           const QString& yes,
                           std::function<void(int)> act) {
  act_ = [this, act = std::move(act)] { act(number_->value()); };
  show_with(text, yes, tr("Cancel"), true);
  number_->setValue(value);
  number_->setFocus();
  number_->selectAll();
}

QString InlineBar::text() const {
  return isHidden() ? QString() : text_->text();
}

void InlineBar::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) return hide();
  if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) && number_->hasFocus())
    return yes_->click();
  QFrame::keyPressEvent(event);
}

}  // namespace ferry::gui
