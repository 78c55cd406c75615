// The program as the user has it, over hundreds of runs: how often it wakes while nothing happens,
// the processor time that its start and its idleness take, and its memory.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QProcess>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gui/models/text.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

constexpr int kRuns = 500, kTurnsMost = 20;
constexpr double kTurn_s = 4;
/** Its timers look at runs, files and the machine. */
constexpr double kWakesMost_per_s = 25;

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

/** Times that a thread of the process went to sleep: what others do on the machine adds none. */
int64_t sleeps_of(qint64 pid) {
  int64_t n = 0;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream file(task.path() / "status");
    const std::string name = "voluntary_ctxt_switches:";
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(name)) n += std::stoll(line.substr(name.size()));
  }
  return n;
}

/** Held in memory now. */
double mib_of(qint64 pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  int64_t all = 0, held = 0;
  file >> all >> held;
  return static_cast<double>(held * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

TEST(Program, SleepsAndStaysSmallOverHundredsOfRuns) {
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
  double start_ms = 0, idle_ms = 0, wakes_per_s = 1e9;
  for (int turn = 0; turn < kTurnsMost && wakes_per_s >= kWakesMost_per_s; ++turn) {
    start_ms = cpu_ms_of(pid);
    const int64_t n_before = sleeps_of(pid);
    QElapsedTimer timer;
    timer.start();
    wait_until([&] { return static_cast<double>(timer.elapsed()) > 1e3 * kTurn_s; });
    wakes_per_s = static_cast<double>(sleeps_of(pid) - n_before) / kTurn_s;
    idle_ms = cpu_ms_of(pid) - start_ms;
  }
  const double mib = mib_of(pid);
  ::kill(static_cast<pid_t>(pid), SIGTERM);
  app.waitForFinished();
  printf("idle: wakes %.1f times a second, %.0f MiB\n", wakes_per_s, mib);
  tell_time("processor time of the start", start_ms, 1000);
  tell_time("processor time of 4 s of idleness", idle_ms, 1e3 * kTurn_s * 0.01);
  EXPECT_LT(wakes_per_s, kWakesMost_per_s);
  EXPECT_LT(mib, 150);
}

}  // namespace
}  // namespace ferry::gui
