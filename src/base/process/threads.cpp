#include "src/base/process/threads.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace ferry {

int n_usable_threads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

void limit_spinning_of_children() {
  // Threads that wait spin for some microseconds only. Longer, and beside a busy program each
  // barrier costs the time slice of a thread that does not run; shorter, and small layers wait for
  // wake-ups.
  setenv("GOMP_SPINCOUNT", "300", /*overwrite=*/0);
}

}  // namespace ferry
