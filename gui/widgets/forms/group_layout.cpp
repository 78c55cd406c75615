#include "gui/widgets/forms/group_layout.h"

#include <QStyle>
#include <QWidget>
#include <algorithm>

namespace ferry::gui {

namespace {

/** Characters of a column: room for a label, a field, its unit and Reset. */
constexpr int kLeastColumn = 100, kMostColumn = 200, kColumnGap = 6;
constexpr int kGroupColumnsMost = 3;

int height_of(const QLayoutItem& item, int width) {
  return item.hasHeightForWidth() ? item.heightForWidth(width) : item.sizeHint().height();
}

}  // namespace

GroupLayout::~GroupLayout() {
  while (QLayoutItem* item = GroupLayout::takeAt(0))
    delete item;
}

QLayoutItem* GroupLayout::takeAt(int index) {
  return index >= 0 && index < items_.size() ? items_.takeAt(index) : nullptr;
}

QList<QLayoutItem*> GroupLayout::shown() const {
  QList<QLayoutItem*> shown;
  for (QLayoutItem* item : items_)
    if (!item->isEmpty()) shown << item;
  return shown;
}

int GroupLayout::gap_below() const {
  return parentWidget()->fontMetrics().height() * 3 / 4;
}

GroupLayout::Columns GroupLayout::columns(int width) const {
  const QList<QLayoutItem*> items = shown();
  if (items.isEmpty()) return {};
  const int em = parentWidget()->fontMetrics().averageCharWidth();
  int least = kLeastColumn * em;
  for (const QLayoutItem* item : items)
    least = std::max(least, item->minimumSize().width());
  const int gap = kColumnGap * em;
  const int most_columns = std::min(kGroupColumnsMost, static_cast<int>(items.size()));
  const int n = std::clamp((width + gap) / (least + gap), 1, most_columns);
  Columns columns = {.width = std::min((width - (n - 1) * gap) / n, kMostColumn * em),
                     .heights = {}};
  std::vector<int> heights;
  int lowest = 0, all = 0;
  for (const QLayoutItem* item : items) {
    heights.push_back(height_of(*item, columns.width));
    lowest = std::max(lowest, heights.back());
    all += heights.back() + gap_below();
  }
  // The least height at which the groups, in their order, take no more than n columns.
  const auto fill = [&](int most) {
    std::vector<std::vector<int>> filled(1);
    int used = 0;
    for (const int height : heights) {
      const int more = filled.back().empty() ? height : gap_below() + height;
      if (used + more > most && !filled.back().empty()) {
        filled.emplace_back();
        used = height;
      } else {
        used += more;
      }
      filled.back().push_back(height);
    }
    return filled;
  };
  int highest = std::max(all, lowest);
  while (lowest < highest) {
    const int middle = (lowest + highest) / 2;
    if (static_cast<int>(fill(middle).size()) <= n)
      highest = middle;
    else
      lowest = middle + 1;
  }
  columns.height = highest;
  columns.heights = fill(highest);
  // Where a column stays free the last groups take it.
  for (size_t at = columns.heights.size();
       static_cast<int>(columns.heights.size()) < n && at-- > 0;)
    while (columns.heights[at].size() > 1 && static_cast<int>(columns.heights.size()) < n) {
      const int last = columns.heights[at].back();
      columns.heights[at].pop_back();
      columns.heights.insert(columns.heights.begin() + static_cast<std::ptrdiff_t>(at) + 1, {last});
    }
  return columns;
}

int GroupLayout::heightForWidth(int width) const {
  return columns(width).height;
}

void GroupLayout::setGeometry(const QRect& rect) {
  QLayout::setGeometry(rect);
  const Columns placed = columns(rect.width());
  const int gap = kColumnGap * parentWidget()->fontMetrics().averageCharWidth();
  const QList<QLayoutItem*> items = shown();
  qsizetype next = 0;
  int x = rect.x();
  for (const auto& column : placed.heights) {
    int y = rect.y();
    for (const int height : column) {
      items[next++]->setGeometry(QStyle::visualRect(parentWidget()->layoutDirection(), rect,
                                                    {x, y, placed.width, height}));
      y += height + gap_below();
    }
    x += placed.width + gap;
  }
}

QSize GroupLayout::sizeHint() const {
  QSize size;
  for (const QLayoutItem* item : shown())
    size = size.expandedTo(item->sizeHint());
  return {size.width(), heightForWidth(size.width())};
}

/** The height follows from the width that it gets. */
QSize GroupLayout::minimumSize() const {
  QSize size;
  for (const QLayoutItem* item : shown())
    size = size.expandedTo(item->minimumSize());
  return size;
}

}  // namespace ferry::gui
