#include "src/engine/step_time.h"

#include <chrono>
#include <utility>
#include <vector>

#include "src/base/median.h"

namespace ferry {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

}  // namespace

double time_of_step(Session& session, std::span<const HostBatch> micro_batches) {
  // The second time a graph is recorded, and the third it runs. A GPU's clock takes some tenths of
  // a second to come down to what its power allows.
  constexpr int kBefore_least = 3;
  constexpr double kBefore_s = 0.7, kBefore_s_most = 4;
  constexpr size_t kTimed_most = 15;
  constexpr double kTimed_s = 1;
  const auto start = Clock::now();
  auto last = start;
  for (int n = 0; n < kBefore_least || seconds_between(start, last) < kBefore_s; ++n) {
    session.rehearse(micro_batches, /*settles=*/false);
    last = Clock::now();
    if (seconds_between(start, last) >= kBefore_s_most) break;
  }
  const auto timed_from = last;
  std::vector<double> seconds;
  while (seconds.size() < kTimed_most && seconds_between(timed_from, last) < kTimed_s) {
    session.rehearse(micro_batches, /*settles=*/false);
    const auto now = Clock::now();
    seconds.push_back(seconds_between(last, now));
    last = now;
  }
  session.executor().settle();
  return median(std::move(seconds));
}

}  // namespace ferry
