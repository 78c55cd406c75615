#include "src/train/loop/hang_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/movement.h"

namespace ferry {
namespace {

using namespace std::chrono_literals;

/** Ctrl-S, or a reader of the pipe that takes its time: somebody holds the run on purpose. */
bool is_output_held() {
  pollfd outputs[] = {{STDOUT_FILENO, POLLOUT, 0}, {STDERR_FILENO, POLLOUT, 0}};
  return ::poll(outputs, 2, 0) >= 0 &&
         std::ranges::any_of(outputs, [](const pollfd& output) { return output.revents == 0; });
}

}  // namespace

void leave_at_once(const std::string& text) {
  // In a thread that may hang as well: the log lies on the disk that does not answer, or somebody
  // who hangs holds its lock.
  std::atomic<bool> is_said = false;
  std::thread([&] {
    const std::string line = "ferry: " + text + "\n";
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
    log_only("ferry: " + text);
    is_said = true;
  }).detach();
  for (int i = 0; i < 200 && !is_said; ++i)
    std::this_thread::sleep_for(10ms);
  ::_exit(static_cast<int>(Fault::machine));
}

void watch_for_hangs(const std::filesystem::path& run) {
  const auto patience = hang_patience();
  const Error error(
      Fault::machine, "train.hang",
      fmt::format("nothing has moved for {} s: a driver, a disk or a network share does not answer",
                  std::chrono::duration<double>(2 * patience).count()),
      fmt::format("the run leaves; go on from its last complete checkpoint with: ferry train "
                  "--resume '{}'; FERRY_WATCHDOG_S sets how long it may stand",
                  run.string()));
  std::thread([patience, text = std::string(error.what())] {
    const auto look = std::clamp<std::chrono::milliseconds>(patience / 8, 1ms, 10s);
    std::chrono::milliseconds still{0};
    for (uint64_t seen = n_movements(); still < 2 * patience;) {
      std::this_thread::sleep_for(look);
      const uint64_t now = n_movements();
      still = now == seen && !is_output_held() ? still + look : 0ms;
      seen = now;
    }
    leave_at_once(text);
  }).detach();
}

}  // namespace ferry
