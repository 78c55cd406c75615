#include "gui/widgets/forms/flow_layout.h"

#include <algorithm>

namespace ferry::gui {

FlowLayout::~FlowLayout() {
  while (QLayoutItem* item = FlowLayout::takeAt(0))
    delete item;
}

QLayoutItem* FlowLayout::takeAt(int index) {
  return index >= 0 && index < items_.size() ? items_.takeAt(index) : nullptr;
}

void FlowLayout::setGeometry(const QRect& rect) {
  QLayout::setGeometry(rect);
  place(rect, false);
}

QSize FlowLayout::minimumSize() const {
  QSize size;
  for (const QLayoutItem* item : items_)
    size = size.expandedTo(item->minimumSize());
  return size;
}

int FlowLayout::place(const QRect& rect, bool is_trial) const {
  int x = rect.x(), y = rect.y(), line = 0;
  const int gap = std::max(spacing(), 0);
  for (QLayoutItem* item : items_) {
    const QSize hint = item->sizeHint();
    if (x > rect.x() && x + hint.width() > rect.right() + 1) {
      x = rect.x();
      y += line + gap;
      line = 0;
    }
    if (!is_trial) item->setGeometry({{x, y}, hint});
    x += hint.width() + gap;
    line = std::max(line, hint.height());
  }
  return y + line - rect.y();
}

}  // namespace ferry::gui
