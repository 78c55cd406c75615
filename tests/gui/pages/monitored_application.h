#pragma once
// An application that measures its event handlers: none may take more than a frame of its thread's
// processor time, which other programs on the machine do not lengthen.

#include <QApplication>
#include <QStringList>

#include "tests/gui/waiting.h"

namespace ferry::gui {

class MonitoredApplication : public QApplication {
 public:
  using QApplication::QApplication;

  static constexpr double kFrame_ms = 16;

  bool notify(QObject* receiver, QEvent* event) override {
    // The last type is told before: a handler may delete the receiver.
    const QString what = QStringLiteral("%1 \"%2\", event %3")
                             .arg(receiver->metaObject()->className(), receiver->objectName())
                             .arg(event->type());
    ++depth_;
    const double begin = cpu_ms();
    const bool is_handled = QApplication::notify(receiver, event);
    const double took = cpu_ms() - begin;
    // Only whole turns of the event loop count, and only while somebody watches.
    if (--depth_ == 0 && is_watching_ && took > kFrame_ms)
      slow_ << QStringLiteral("%1: %2 ms").arg(what).arg(took, 0, 'f', 1);
    return is_handled;
  }

  /** From here on handlers are measured; what was slow is forgotten. */
  void watch() {
    is_watching_ = true;
    slow_.clear();
  }
  QStringList stop_watching() {
    is_watching_ = false;
    return slow_;
  }

 private:
  bool is_watching_ = false;
  int depth_ = 0;
  QStringList slow_;
};

}  // namespace ferry::gui
