#include "src/base/threads.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace ferry {

int n_usable_threads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace ferry
