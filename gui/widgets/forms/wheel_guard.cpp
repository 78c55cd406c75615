#include "gui/widgets/forms/wheel_guard.h"

#include <QEvent>

namespace ferry::gui {

namespace {

class Guard : public QObject {
 public:
  using QObject::QObject;
  bool eventFilter(QObject* watched, QEvent* event) override {
    Q_UNUSED(watched);
    if (event->type() != QEvent::Wheel) return false;
    // Also of what has the focus: who chose something and scrolls on means the page.
    event->ignore();  // goes to the parent
    return true;
  }
};

}  // namespace

void guard_wheel(QWidget* widget) {
  if (widget->focusPolicy() == Qt::WheelFocus) widget->setFocusPolicy(Qt::StrongFocus);
  widget->installEventFilter(new Guard(widget));
}

}  // namespace ferry::gui
