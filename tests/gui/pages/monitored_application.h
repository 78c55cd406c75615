#pragma once
// An application that measures its event handlers: those that take more than a frame of its
// thread's processor time are told. With FERRY_TIMES=1 those that hold the window up are failures.

#include <QApplication>
#include <QStringList>
#include <cstdio>

#include "tests/gui/waiting.h"

namespace ferry::gui {

class MonitoredApplication : public QApplication {
 public:
  using QApplication::QApplication;

  static constexpr double kFrame_ms = 16;
  /** Busy virtual machines were seen to add some 30 ms to a thread's processor time. */
  static constexpr double kHeld_ms = 100;

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
    if (--depth_ > 0 || !is_watching_ || took <= kFrame_ms) return is_handled;
    const QString turn = QStringLiteral("%1: %2 ms").arg(what).arg(took, 0, 'f', 1);
    printf("slow handler: %s\n", qPrintable(turn));
    if (took > kHeld_ms) held_ << turn;
    return is_handled;
  }

  /** From here on handlers are measured; what was held up is forgotten. */
  void watch() {
    is_watching_ = true;
    held_.clear();
  }
  /** The turns that held the window up. */
  QStringList stop_watching() {
    is_watching_ = false;
    return held_;
  }

 private:
  bool is_watching_ = false;
  int depth_ = 0;
  QStringList held_;
};

}  // namespace ferry::gui
