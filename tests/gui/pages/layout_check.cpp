#include "tests/gui/pages/layout_check.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QLabel>
#include <QScrollArea>
#include <QScrollBar>
#include <QSizeGrip>
#include <QSplitterHandle>
#include <QToolButton>
#include <QWidget>

namespace ferry::gui {

namespace {

QString name_of(const QWidget& widget) {
  QString text;
  if (const auto* label = qobject_cast<const QLabel*>(&widget)) text = label->text();
  if (const auto* button = qobject_cast<const QAbstractButton*>(&widget)) text = button->text();
  return QStringLiteral("%1 \"%2\" '%3'")
      .arg(widget.metaObject()->className(), widget.objectName(), text.left(60));
}

bool shows_text(const QWidget& widget) {
  if (const auto* label = qobject_cast<const QLabel*>(&widget))
    return !label->text().isEmpty() && label->pixmap(Qt::ReturnByValue).isNull();
  if (const auto* button = qobject_cast<const QAbstractButton*>(&widget))
    return !button->text().isEmpty();
  return false;
}

bool is_cut(const QWidget& widget) {
  if (!shows_text(widget)) return false;
  const auto* label = qobject_cast<const QLabel*>(&widget);
  if (label && label->wordWrap()) {
    // A wrapped text needs the height of its lines at the width that it got.
    const int needed = label->heightForWidth(label->width());
    return needed > label->height() + 1;
  }
  const QSize needed = label ? label->sizeHint() : widget.minimumSizeHint();
  return needed.width() > widget.width() + 1 || needed.height() > widget.height() + 2;
}

/** Parts that lie on others by design. */
bool lies_on_top(const QWidget& widget) {
  return qobject_cast<const QSizeGrip*>(&widget) || qobject_cast<const QScrollBar*>(&widget) ||
         qobject_cast<const QSplitterHandle*>(&widget) || widget.isWindow() ||
         widget.property("lies_on_top").toBool();
}

/** What is to be seen of `parent`: its children are cut at these edges. What a scroll bar brings
 * into view is not cut. */
QRect room_for_children(const QWidget& parent) {
  constexpr int kAll = 1 << 20;
  QRect room = parent.rect();
  const auto* area = qobject_cast<const QAbstractScrollArea*>(parent.parentWidget());
  if (!area || area->viewport() != &parent) return room;
  // Lists and editors place their parts themselves.
  const bool is_page = area->inherits("QScrollArea");
  if (!is_page || area->horizontalScrollBar()->isVisible()) room.adjust(-kAll, 0, kAll, 0);
  if (!is_page || area->verticalScrollBar()->isVisible()) room.adjust(0, -kAll, 0, kAll);
  return room;
}

void add_faults(const QWidget& parent, QStringList& faults) {
  QList<const QWidget*> visible;
  for (const QObject* child : parent.children())
    if (const auto* widget = qobject_cast<const QWidget*>(child))
      if (widget->isVisible() && !widget->isWindow()) visible << widget;
  const QRect room = room_for_children(parent);
  for (const QWidget* widget : visible) {
    const QRect place = widget->geometry();
    if (!lies_on_top(*widget) && !room.contains(place))
      faults << QStringLiteral("outside: %1, %2 to %3 by %4 to %5 of %6 to %7 by %8 to %9")
                    .arg(name_of(*widget))
                    .arg(place.left())
                    .arg(place.right())
                    .arg(place.top())
                    .arg(place.bottom())
                    .arg(room.left())
                    .arg(room.right())
                    .arg(room.top())
                    .arg(room.bottom());
    if (is_cut(*widget))
      faults << QStringLiteral("cut: %1, %2x%3 of %4x%5")
                    .arg(name_of(*widget))
                    .arg(widget->width())
                    .arg(widget->height())
                    .arg(widget->sizeHint().width())
                    .arg(widget->sizeHint().height());
    add_faults(*widget, faults);
  }
  // A viewport's children are scrolled; editors keep their parts in line themselves.
  if (parent.inherits("QAbstractScrollArea") || parent.inherits("QLineEdit") ||
      parent.inherits("QAbstractSpinBox") || parent.inherits("QComboBox"))
    return;
  for (qsizetype i = 0; i < visible.size(); ++i)
    for (qsizetype j = i + 1; j < visible.size(); ++j) {
      if (lies_on_top(*visible[i]) || lies_on_top(*visible[j])) continue;
      const QRect common = visible[i]->geometry() & visible[j]->geometry();
      if (common.width() > 2 && common.height() > 2)
        faults
            << QStringLiteral("overlap: %1 and %2").arg(name_of(*visible[i]), name_of(*visible[j]));
    }
}

}  // namespace

QStringList layout_faults(const QWidget& root) {
  QStringList faults;
  add_faults(root, faults);
  return faults;
}

}  // namespace ferry::gui
