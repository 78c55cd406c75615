#include "src/base/process/movement.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "src/base/error.h"

namespace ferry {
namespace {

std::atomic<uint64_t> n_noted = 0;
std::mutex awaited_lock;
Awaited noted_awaited;

}  // namespace

void note_movement() {
  n_noted.fetch_add(1, std::memory_order_relaxed);
}

uint64_t n_movements() {
  return n_noted.load(std::memory_order_relaxed);
}

void note_awaited(Awaited awaited) {
  std::lock_guard lock(awaited_lock);
  noted_awaited = std::move(awaited);
}

Awaited awaited() {
  std::lock_guard lock(awaited_lock);
  return noted_awaited;
}

std::chrono::milliseconds hang_patience() {
  const char* text = std::getenv("FERRY_WATCHDOG_S");
  if (!text || !*text) return std::chrono::seconds(600);
  double seconds = 0;
  const char* end = text + std::strlen(text);
  auto [stop, status] = std::from_chars(text, end, seconds);
  if (status != std::errc{} || stop != end || !(seconds > 0 && seconds <= 1e9))
    throw Error(Fault::usage, "executor.watchdog",
                fmt::format("FERRY_WATCHDOG_S is '{}', seconds above 0 were expected", text));
  return std::chrono::milliseconds(std::max<int64_t>(1, static_cast<int64_t>(seconds * 1000)));
}

}  // namespace ferry
