#include "gui/widgets/plain_tips.h"

#include <QAbstractItemView>
#include <QHeaderView>
#include <QHelpEvent>
#include <QTextDocument>
#include <QToolTip>
#include <QVariant>

namespace ferry::gui {
namespace {

constexpr const char* kRichTip = "ferry_rich_tip";

/** The tip that Qt would show there. */
QString tip_at(QWidget* widget, const QPoint& at) {
  auto* const view = qobject_cast<QAbstractItemView*>(widget->parentWidget());
  if (!view || view->viewport() != widget || !view->model()) return widget->toolTip();
  if (const auto* const header = qobject_cast<QHeaderView*>(view))
    return header->model()
        ->headerData(header->logicalIndexAt(at), header->orientation(), Qt::ToolTipRole)
        .toString();
  return view->indexAt(at).data(Qt::ToolTipRole).toString();
}

class PlainTips final : public QObject {
 public:
  using QObject::QObject;

  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() != QEvent::ToolTip || !watched->isWidgetType()) return false;
    auto* const widget = static_cast<QWidget*>(watched);
    const auto* const help = static_cast<QHelpEvent*>(event);
    const QString tip = tip_at(widget, help->pos());
    if (!Qt::mightBeRichText(tip) || widget->property(kRichTip).toBool()) return false;
    QToolTip::showText(help->globalPos(), Qt::convertFromPlainText(tip, Qt::WhiteSpaceNormal),
                       widget);
    return true;
  }
};

}  // namespace

void install_plain_tips(QObject& application) {
  application.installEventFilter(new PlainTips(&application));
}

void allow_rich_tip(QWidget& widget) {
  widget.setProperty(kRichTip, true);
}

}  // namespace ferry::gui
