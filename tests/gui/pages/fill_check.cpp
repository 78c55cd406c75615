#include "tests/gui/pages/fill_check.h"

#include <QAbstractItemView>
#include <QHash>
#include <QHeaderView>
#include <QImage>
#include <QTableView>
#include <QTreeView>
#include <algorithm>

namespace ferry::gui {

namespace {

/** The header of the columns; nullptr: it is a list. */
const QHeaderView* header_of(const QAbstractItemView& view) {
  if (const auto* table = qobject_cast<const QTableView*>(&view)) return table->horizontalHeader();
  if (const auto* tree = qobject_cast<const QTreeView*>(&view)) return tree->header();
  return nullptr;
}

}  // namespace

QStringList column_faults(const QWidget& root) {
  QStringList faults;
  QList<QAbstractItemView*> views = root.findChildren<QAbstractItemView*>();
  if (const auto* view = qobject_cast<const QAbstractItemView*>(&root))
    views << const_cast<QAbstractItemView*>(view);
  for (const QAbstractItemView* view : views) {
    const QHeaderView* const header = header_of(*view);
    // A pop-up is a window of its own.
    if (!header || header->count() == 0 || !view->isVisible() || view->window() != root.window())
      continue;
    const bool is_centred = header->defaultAlignment() & Qt::AlignHCenter;
    if (is_centred && !header->isHidden() &&
        !view->model()->headerData(0, Qt::Horizontal, Qt::TextAlignmentRole).isValid())
      faults << QStringLiteral("header of \"%1\": not above the words of its cells")
                    .arg(view->objectName());
    constexpr int kWide = 42;  // characters: a wider column could give way
    const int most = kWide * view->fontMetrics().averageCharWidth();
    bool has_wide = false;
    for (int column = 0; column < header->count(); ++column)
      has_wide |= header->sectionSize(column) > std::max(most, header->sectionSizeHint(column));
    const int room = view->viewport()->width(), taken = header->length();
    if (taken < room || (taken > room && has_wide))
      faults << QStringLiteral("columns of \"%1\": %2 of %3 pixels")
                    .arg(view->objectName())
                    .arg(taken)
                    .arg(room);
  }
  return faults;
}

double emptiness(const QImage& image) {
  QHash<QRgb, int> counts;
  int most = 0, n = 0;
  for (int y = 0; y < image.height(); y += 4)
    for (int x = image.width() / 6; x < image.width(); x += 4, ++n)
      most = std::max(most, ++counts[image.pixel(x, y)]);
  return static_cast<double>(most) / std::max(1, n);
}

}  // namespace ferry::gui
