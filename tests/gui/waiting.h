#pragma once
// Waits for what comes through the event loop.

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QThread>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <gtest/gtest.h>

namespace ferry::gui {

/** Milliseconds of this thread's CPU time, or of all of the process's: what a machine that others
 * use, too, takes does not count. */
inline double cpu_ms(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/** FERRY_TIMES=1: times are judged, too. That is for idle machines; busy ones add to every time. */
inline bool judges_times() {
  return std::getenv("FERRY_TIMES") != nullptr;
}

/** Prints a time beside the most that it should be. It fails the test with FERRY_TIMES=1 alone. */
inline void tell_time(const char* what, double took_ms, double most_ms) {
  std::printf("%s: %.1f ms, of %.0f at most\n", what, took_ms, most_ms);
  if (judges_times()) {
    EXPECT_LT(took_ms, most_ms) << what;
  }
}

struct Turns {
  int n = 0;
  double longest_ms = 0;  ///< of the thread's processor time
};

/** Turns of the event loop until it is true. */
template <typename Condition>
Turns turns_until(const Condition& is_true, int patience_ms = 60000) {
  Turns turns;
  QElapsedTimer timer;
  for (timer.start(); !is_true() && timer.elapsed() < patience_ms; ++turns.n) {
    const double begin = cpu_ms();
    QCoreApplication::processEvents(QEventLoop::AllEvents);
    turns.longest_ms = std::max(turns.longest_ms, cpu_ms() - begin);
    QThread::msleep(1);
  }
  return turns;
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
