#include "gui/widgets/data/token_view.h"

#include <QEvent>
#include <QTextCursor>
#include <algorithm>
#include <vector>

#include "gui/models/text.h"

namespace ferry::gui {

namespace {

/** No more bytes than these are shown around what the sequence takes of a text. */
constexpr size_t kAround_bytes = 300;

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

QColor mixed(const QColor& a, const QColor& b, float share) {
  return QColor::fromRgbF(a.redF() * (1 - share) + b.redF() * share,
                          a.greenF() * (1 - share) + b.greenF() * share,
                          a.blueF() * (1 - share) + b.blueF() * share);
}

}  // namespace

TokenView::TokenView(Shows shows, QWidget* parent) : QTextEdit(parent), shows_(shows) {
  setReadOnly(true);
  setTabChangesFocus(true);
  setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
}

void TokenView::set_sample(const service::PreviewSample& sample) {
  sample_ = sample;
  clear();
  if (shows_ == Shows::text)
    show_text();
  else
    show_tokens();
  moveCursor(QTextCursor::Start);
}

QTextCharFormat TokenView::trained() const {
  QTextCharFormat format;
  format.setFontUnderline(true);
  format.setFontWeight(QFont::DemiBold);
  format.setBackground(
      mixed(palette().color(QPalette::Base), palette().color(QPalette::Highlight), 0.28F));
  format.setForeground(palette().color(QPalette::Text));
  return format;
}

QTextCharFormat TokenView::faint() const {
  QTextCharFormat format;
  format.setForeground(palette().color(QPalette::PlaceholderText));
  format.setFontItalic(true);
  return format;
}

void TokenView::show_text() {
  QTextCursor cursor(document());
  cursor.beginEditBlock();
  show_part(cursor, 0);
  if (!sample_.text_pair.empty()) {
    cursor.insertBlock();
    show_part(cursor, 1);
  }
  cursor.endEditBlock();
}

void TokenView::show_part(QTextCursor& cursor, int text) {
  const std::string& all = text == 0 ? sample_.text : sample_.text_pair;
  enum : uint8_t { kRead = 1, kTrained = 2 };
  size_t begin = all.size(), end = 0;
  const auto for_each = [&](const auto& work) {
    for (const service::PreviewToken& token : sample_.tokens)
      if (token.text == text && token.bytes.end <= all.size()) work(token);
  };
  for_each([&](const service::PreviewToken& token) {
    begin = std::min<size_t>(begin, token.bytes.begin);
    end = std::max<size_t>(end, token.bytes.end);
  });
  if (begin > end) begin = end = 0;
  // Text between tokens was read, too.
  std::vector<uint8_t> flags(all.size(), 0);
  std::fill(flags.begin() + static_cast<std::ptrdiff_t>(begin),
            flags.begin() + static_cast<std::ptrdiff_t>(end), kRead);
  for_each([&](const service::PreviewToken& token) {
    if (token.is_trained)
      std::fill(flags.begin() + token.bytes.begin, flags.begin() + token.bytes.end, kTrained);
  });
  size_t from = begin > kAround_bytes ? begin - kAround_bytes : 0;
  size_t to = std::min(all.size(), end + kAround_bytes);
  while (from > 0 && !begins_character(all[from]))
    --from;
  while (to < all.size() && !begins_character(all[to]))
    ++to;
  if (from > 0) cursor.insertText(QStringLiteral("\u2026 "), faint());
  const QTextCharFormat plain, learnt = trained(), left_out = faint();
  for (size_t at = from; at < to;) {
    size_t stop = at + 1;
    while (stop < to && (flags[stop] == flags[at] || !begins_character(all[stop])))
      ++stop;
    const QString part = to_text(std::string_view(all).substr(at, stop - at));
    cursor.insertText(part, flags[at] == kTrained ? learnt : flags[at] == kRead ? plain : left_out);
    at = stop;
  }
  if (to < all.size()) cursor.insertText(QStringLiteral(" \u2026"), left_out);
}

void TokenView::show_tokens() {
  QTextCursor cursor(document());
  cursor.beginEditBlock();
  QTextBlockFormat lines;
  constexpr double kLine_percent = 145;
  lines.setLineHeight(kLine_percent, QTextBlockFormat::ProportionalHeight);
  cursor.setBlockFormat(lines);
  const QTextCharFormat learnt = trained(), special = faint();
  QTextCharFormat plain;
  plain.setForeground(palette().color(QPalette::Text));
  plain.setBackground(palette().color(QPalette::AlternateBase));
  QTextCharFormat target = faint();
  target.setVerticalAlignment(QTextCharFormat::AlignNormal);
  const QTextCharFormat space;
  bool is_first = true;
  for (const service::PreviewToken& token : sample_.tokens) {
    if (!is_first) cursor.insertText(QStringLiteral("  "), space);
    is_first = false;
    const bool is_special = token.text < 0 && !token.is_trained;
    cursor.insertText(to_text(token.piece), token.is_trained ? learnt
                                            : is_special     ? special
                                                             : plain);
    if (!token.target.empty() && token.target != token.piece)
      cursor.insertText(QStringLiteral(" \u2192 ") + to_text(token.target), target);
  }
  cursor.endEditBlock();
}

void TokenView::changeEvent(QEvent* event) {
  QTextEdit::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && !sample_.tokens.empty()) {
    const service::PreviewSample sample = sample_;
    set_sample(sample);
  }
}

}  // namespace ferry::gui
