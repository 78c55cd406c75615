#pragma once
// Waits for what comes through the event loop.

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QThread>

namespace ferry::gui::test {

template <typename Condition>
bool wait_until(const Condition& is_true, int patience_ms = 60000) {
  QElapsedTimer timer;
  for (timer.start(); !is_true();) {
    if (timer.elapsed() > patience_ms) return false;
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    QThread::msleep(1);
  }
  return true;
}

}  // namespace ferry::gui::test
