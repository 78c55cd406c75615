#pragma once
// A thread to which operator new gives nothing, for tests of what cleans up after memory ran out.
// Only in programs that are built of no_memory.cpp.

namespace ferry::test {

/** For its lifetime every operator new of this thread throws std::bad_alloc. */
class NoMemory {
 public:
  NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory();
};

}  // namespace ferry::test
