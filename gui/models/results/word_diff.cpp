#include "gui/models/results/word_diff.h"

#include <QStringList>
#include <algorithm>
#include <cstdint>

namespace ferry::gui {

namespace {

constexpr qsizetype kWordsMax = 1200;  // squared it stays some milliseconds

/** Words with the blanks behind them, so that joined they are the text. */
QStringList words_of(const QString& text) {
  QStringList words;
  qsizetype begin = 0;
  for (qsizetype at = 1; at <= text.size(); ++at) {
    const bool ends = at == text.size() || (text[at - 1].isSpace() && !text[at].isSpace());
    if (!ends) continue;
    if (words.size() == kWordsMax) {
      words << text.mid(begin);
      return words;
    }
    words << text.mid(begin, at - begin);
    begin = at;
  }
  return words;
}

void add(std::vector<DiffPart>& parts, const QString& word, bool is_other) {
  if (parts.empty() || parts.back().is_other != is_other)
    parts.push_back({word, is_other});
  else
    parts.back().text += word;
}

}  // namespace

std::pair<std::vector<DiffPart>, std::vector<DiffPart>> word_diff(const QString& a,
                                                                  const QString& b) {
  const QStringList x = words_of(a), y = words_of(b);
  const auto n = static_cast<size_t>(x.size()), m = static_cast<size_t>(y.size());
  const auto word = [](const QStringList& words, size_t i) -> const QString& {
    return words[static_cast<qsizetype>(i)];
  };
  const auto is_same = [&](size_t i, size_t j) {
    return QStringView(word(x, i)).trimmed() == QStringView(word(y, j)).trimmed();
  };
  // longest[i][j]: the most words that x from i on and y from j on have in common.
  std::vector<uint16_t> longest((n + 1) * (m + 1), 0);
  const auto at = [&](size_t i, size_t j) -> uint16_t& { return longest[i * (m + 1) + j]; };
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;)
      at(i, j) = is_same(i, j) ? static_cast<uint16_t>(at(i + 1, j + 1) + 1)
                               : std::max(at(i + 1, j), at(i, j + 1));
  std::pair<std::vector<DiffPart>, std::vector<DiffPart>> parts;
  size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && is_same(i, j)) {
      add(parts.first, word(x, i++), false);
      add(parts.second, word(y, j++), false);
    } else if (j == m || (i < n && at(i + 1, j) >= at(i, j + 1))) {
      add(parts.first, word(x, i++), true);
    } else {
      add(parts.second, word(y, j++), true);
    }
  }
  return parts;
}

}  // namespace ferry::gui
