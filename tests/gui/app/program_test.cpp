// The program as the user has it, over hundreds of runs: the processor time that its start and its
// idleness take, and its memory.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QProcess>
#include <fstream>
#include <sstream>

#include "gui/models/text.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

constexpr int kRuns = 500, kTurnsMost = 20;
constexpr double kIdleShare = 0.01;

/** Of all of the process's threads, in milliseconds. */
double cpu_ms_of(qint64 pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string field;
  for (int i = 0; i < 11; ++i)
    fields >> field;
  int64_t user = 0, system = 0;
  fields >> user >> system;
  return 1e3 * static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/** Held in memory now. */
double mib_of(qint64 pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  int64_t all = 0, held = 0;
  file >> all >> held;
  return static_cast<double>(held * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

TEST(Program, StartsAndIdlesWithinItsMeansOverHundredsOfRuns) {
  const char* program = getenv("FERRY_GUI");
  ASSERT_TRUE(program) << "the test's surroundings name it";
  TestHome home;
  for (int i = 0; i < kRuns; ++i)
    make_run(home.runs() / fmt::format("run-{:03}", i));
  QProcess app;
  app.setProcessChannelMode(QProcess::MergedChannels);
  app.start(program, {});
  ASSERT_TRUE(app.waitForStarted());
  const qint64 pid = app.processId();
  // Started is who idles. On a machine that others use, that takes a few turns.
  double start_ms = 0, share = 1;
  for (int turn = 0; turn < kTurnsMost && share >= kIdleShare; ++turn) {
    QElapsedTimer timer;
    timer.start();
    start_ms = cpu_ms_of(pid);
    wait_until([&] { return timer.elapsed() > 4000; });
    share = (cpu_ms_of(pid) - start_ms) / static_cast<double>(timer.elapsed());
  }
  const double mib = mib_of(pid);
  ::kill(static_cast<pid_t>(pid), SIGTERM);
  app.waitForFinished();
  printf("start: %.0f ms of processor time; idle: %.2f %% of a core, %.0f MiB\n", start_ms,
         100 * share, mib);
  EXPECT_LT(start_ms, 1000);
  EXPECT_LT(share, kIdleShare);
  EXPECT_LT(mib, 150);
}

}  // namespace
}  // namespace ferry::gui
