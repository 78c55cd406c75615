#pragma once
// Waits for what comes through the event loop.

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QThread>
#include <algorithm>
#include <ctime>

namespace ferry::gui {

/** Milliseconds of this thread's CPU time, or of all of the process's: what a machine that others
 * use, too, takes does not count. */
inline double cpu_ms(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/** The most of a turn of the event loop until it is true. */
template <typename Condition>
double longest_turn_until(const Condition& is_true, int patience_ms = 60000) {
  double longest = 0;
  QElapsedTimer timer;
  for (timer.start(); !is_true() && timer.elapsed() < patience_ms;) {
    const double begin = cpu_ms();
    QCoreApplication::processEvents(QEventLoop::AllEvents);
    longest = std::max(longest, cpu_ms() - begin);
    QThread::msleep(1);
  }
  return longest;
}

/** Lets the event loop go on until it is true; false: it is not, after a long time. */
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

}  // namespace ferry::gui
