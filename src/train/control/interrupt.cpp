#include "src/train/control/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/process/supervision.h"

namespace ferry {
namespace {

volatile std::sig_atomic_t n_signals = 0, has_work = 0, leaves_name = 0;
/** Set before leaves_name is. */
std::string name_to_leave, record_to_leave;

/** The terminal may be gone; there is nobody to tell then. */
void tell(std::string_view text) {
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
}

/** A watcher passes on what may have come to this process, too. */
bool is_copy_of_last() {
  constexpr int64_t kApart_ms = 500;
  static int64_t last_ms = -kApart_ms;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ms = now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
  return is_supervised() && now_ms - std::exchange(last_ms, now_ms) < kApart_ms;
}

void on_signal(int) {
  if (!has_work) {
    if (leaves_name) {
      ::unlink(record_to_leave.c_str());
      ::rmdir(name_to_leave.c_str());
    }
    tell("\nferry: left before the first step; nothing was trained or changed\n");
    ::_exit(kInterruptedExit);
  }
  if (is_copy_of_last()) return;
  n_signals = n_signals + 1;
  const std::string_view text = n_signals == 1
                                    ? "\nferry: saving and leaving; once more leaves at once\n"
                                    : "\nferry: left without saving\n";
  tell(text);
  if (n_signals > 1) ::_exit(kInterruptedExit);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // A signal that is ignored from the start stays so: nohup ignores it, and a shell does for jobs
    // in the background.
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    ::sigaction(signal, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);  // a terminal that went away must not end the run
}

void leave_on_interrupts(const std::filesystem::path& directory) {
  leaves_name = 0;
  if (directory.empty()) return;
  name_to_leave = directory.string();
  record_to_leave = (directory / "run.json").string();
  leaves_name = 1;
}

void save_on_interrupts() {
  has_work = 1;
}

bool is_interrupted() {
  return n_signals > 0;
}

}  // namespace ferry
