// The executor's waits, and the watchdog that tells a slow step from one that hangs.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "offload/executor/executor.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/movement.h"

namespace ferry {

using namespace std::chrono_literals;

namespace {

/** Tells what a long wait is for until it ends, however it ends. */
class LongWait {
 public:
  LongWait() = default;
  ~LongWait() {
    if (is_noted_) note_awaited({});
  }
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;
  void note(Awaited awaited) {
    note_awaited(std::move(awaited));
    is_noted_ = true;
  }

 private:
  bool is_noted_ = false;
};

}  // namespace

std::chrono::milliseconds Executor::watchdog_of_environment() {
  return hang_patience();
}

bool Executor::wait_while(EventId event,
                          const StepList& list,
                          const std::function<bool()>& goes_on) {
  const bool is_turn = event == turn_;
  if (!is_turn) ++hooks_.n_host_waits;
  const auto look = std::clamp<std::chrono::milliseconds>(watchdog_ / 8, 1ms, 10s);
  const auto patience = goes_on ? std::min<std::chrono::milliseconds>(look, 50ms) : look;
  // Waits are counted, not the clock read: a run that was stopped and continued has not hung.
  std::chrono::milliseconds since_look{0}, still{0};
  std::string seen;
  LongWait wait;
  while (!(is_turn ? device_.wait_turn(event, patience) : device_.wait_host(event, patience))) {
    if (goes_on && !goes_on()) return false;
    since_look += patience;
    if (since_look < look) continue;
    std::string now = unfinished(list);
    if (now != seen) note_movement();
    wait.note({.what = now, .is_of_ranks = awaits_ranks(list)});
    still = now == seen ? still + since_look : 0ms;
    since_look = 0ms;
    seen = std::move(now);
    if (still < watchdog_) continue;
    Error error(
        Fault::machine, "executor.step",
        fmt::format("nothing has moved for {} s; unfinished, oldest first:{}",
                    std::chrono::duration<double>(watchdog_).count(), seen),
        "see `ferry doctor` and the kernel's log; FERRY_WATCHDOG_S sets how long a step may stand");
    // Said at once: what unwinds waits for the work that hangs, though for no other.
    log_line(fmt::format("ferry: {}", error.what()));
    device_.fail(std::make_exception_ptr(error));
    throw error;
  }
  note_movement();
  return true;
}

bool Executor::awaits_ranks(const StepList& list) {
  if (!shape_.has_peers()) return false;
  // An action waits for none but those before it in the list: the oldest unfinished one runs.
  const std::vector<EventId> ended = events_of(list);
  const auto oldest = std::ranges::find_if(ended, [&](EventId e) { return !device_.happened(e); });
  if (oldest == ended.end()) return false;
  const Verb verb = list[static_cast<size_t>(oldest - ended.begin())].verb;
  return is_between_ranks(verb) || verb == Verb::decide;
}

std::string Executor::unfinished(const StepList& list) {
  std::string text;
  std::array<bool, kQueues> named{};
  auto name = [&](const Action& action, std::string_view when) {
    bool& done = named[static_cast<size_t>(action.queue)];
    if (!done) text += fmt::format(" {}{};", describe(action, shape_), when);
    done = true;
  };
  // Updates wait for their bytes to leave: a slow disk moves.
  if (is_saving()) {
    const auto next =
        std::ranges::find_if(save_order_, [&](int b) { return !device_.happened(saved_[b]); });
    if (next != save_order_.end())
      text += fmt::format(" writing {} to the checkpoint, which has taken {};", block(*next).name,
                          format_bytes(n_saved_bytes_));
  }
  for (int b = 0; b < shape_.n_blocks(); ++b) {
    if (device_.happened(updated_[b])) continue;
    name(end_of_update(b), list.empty() || updates_[current_].order == UpdateOrder::as_grads_arrive
                               ? ""
                               : " of the step before");
  }
  for (int b = 0; b < shape_.n_blocks(); ++b)
    if (!device_.happened(sent_[b]))
      name({.verb = Verb::send_states, .queue = QueueId::nvme_write, .block = b}, "");
  if (!device_.happened(committed_)) name({.verb = Verb::commit, .queue = QueueId::nvme_write}, "");
  const std::vector<EventId> ended = events_of(list);
  for (size_t i = 0; i < list.size(); ++i)
    if (!device_.happened(ended[i])) name(list[i], "");
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace ferry
