// Threads are counted by what the process may run on, not by what the machine has.

#include "src/base/process/threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace ferry {
namespace {

TEST(Threads, AreThoseOfTheAffinityMask) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(n_usable_threads(), CPU_COUNT(&allowed));
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "there is one hardware thread here";

  int first = 0;
  while (!CPU_ISSET(first, &allowed))
    ++first;
  int counted = 0;
  std::thread([&] {  // the mask is a thread's own
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    counted = n_usable_threads();
  })
      .join();
  EXPECT_EQ(counted, 1);
}

}  // namespace
}  // namespace ferry
