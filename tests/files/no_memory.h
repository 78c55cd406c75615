#pragma once
// A thread to which operator new gives nothing, for tests of what cleans up after memory ran out;
// and how often it was called. Only in programs that are built of no_memory.cpp.

#include <cstdint>

namespace ferry::test {

/** Calls of operator new by this thread. */
int64_t n_allocations_of_thread();

/** For its lifetime every operator new of this thread throws std::bad_alloc. */
class NoMemory {
 public:
  NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory();
};

}  // namespace ferry::test
