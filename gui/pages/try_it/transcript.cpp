#include "gui/pages/try_it/transcript.h"

#include <QEvent>
#include <QScrollBar>
#include <QTextCursor>

#include "gui/widgets/look.h"

namespace ferry::gui {

Transcript::Transcript(QWidget* parent) : QTextEdit(parent) {
  setReadOnly(true);
  setTabChangesFocus(true);
  setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  setPlaceholderText(tr("What you ask and what the model answers appears here."));
}

void Transcript::show_exchanges(const std::vector<Exchange>& exchanges) {
  if (exchanges == shown_) return;
  shown_ = exchanges;
  const bool follows = is_at_end();
  const int at = verticalScrollBar()->value();
  write_all();
  if (follows)
    go_to_end();
  else
    verticalScrollBar()->setValue(at);
}

void Transcript::add_text(const QString& text) {
  if (shown_.empty()) return;
  shown_.back().answer += text;
  const bool follows = is_at_end();
  QTextCursor cursor(document());
  cursor.movePosition(QTextCursor::End);
  cursor.insertText(text, QTextCharFormat());
  if (follows) go_to_end();
}

void Transcript::changeEvent(QEvent* event) {
  QTextEdit::changeEvent(event);
  // Texts keep the colours that they were written with.
  if (event->type() == QEvent::PaletteChange) write_all();
}

void Transcript::write_all() {
  clear();
  QTextCursor cursor(document());
  QTextCharFormat plain, head, quiet;
  head.setFontWeight(QFont::Bold);
  quiet.setForeground(palette().color(QPalette::PlaceholderText));
  const int gap = fontMetrics().height() / 2;
  bool is_first = true;
  const auto begin_block = [&](int above) {
    QTextBlockFormat block;
    block.setTopMargin(is_first ? 0 : above);
    if (is_first)
      cursor.setBlockFormat(block);
    else
      cursor.insertBlock(block);
    is_first = false;
  };
  const auto say = [&](const QString& who, const QString& text) {
    begin_block(gap);
    cursor.insertText(who, head);
    begin_block(0);
    cursor.insertText(text, plain);
  };
  for (const Exchange& exchange : shown_) {
    say(tr("You"), exchange.question);
    say(tr("Model"), exchange.answer);
    if (exchange.note.isEmpty()) continue;
    begin_block(0);
    cursor.insertText(exchange.note, quiet);
  }
}

bool Transcript::is_at_end() const {
  return verticalScrollBar()->value() >= verticalScrollBar()->maximum() - fontMetrics().height();
}

void Transcript::go_to_end() {
  verticalScrollBar()->setValue(verticalScrollBar()->maximum());
}

}  // namespace ferry::gui
