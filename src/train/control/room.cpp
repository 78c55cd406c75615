#include "src/train/control/room.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/base/print.h"
#include "src/files/write/disk_full.h"
#include "src/train/control/interrupt.h"

namespace ferry {
namespace {

constexpr const char* kWaitsFor = "waits_for";

/** False where a signal came first. */
bool wait_to_look_again() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook(5000), kListen(50);
  for (const auto next = Clock::now() + kLook; Clock::now() < next;
       std::this_thread::sleep_for(kListen))
    if (is_interrupted()) return false;
  return true;
}

}  // namespace

bool write_when_there_is_room(const std::function<void()>& write, runs::RunDirectory& run) {
  for (bool is_said = false;; is_said = true) {
    try {
      write();
      if (!is_said) return true;
      run.set(kWaitsFor, nullptr);
      run.settle();
      log_line("there is room again: the end is written");
      return true;
    } catch (const DiskFull& full) {
      if (!is_said) {
        log_line(
            fmt::format("{}; all steps are done, and the run waits for room to save its end: "
                        "free some, or leave without it by Ctrl-C",
                        full.what()));
        run.set(kWaitsFor, "room on the disk");
      }
    }
    if (!wait_to_look_again()) return false;
  }
}

}  // namespace ferry
