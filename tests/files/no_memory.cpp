#include "tests/files/no_memory.h"

#include <cstdlib>
#include <new>

namespace {

thread_local bool has_memory = true;
thread_local int64_t n_allocations = 0;

}  // namespace

// Replaces new for the whole program, the C++ library too; arrays and nothrow come through here.
// Not inlined: the compiler would take free() beside new for a slip.
[[gnu::noinline]] void* operator new(std::size_t n_bytes) {
  ++n_allocations;
  void* const memory = has_memory ? std::malloc(n_bytes > 0 ? n_bytes : 1) : nullptr;
  if (!memory) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace ferry::test {

int64_t n_allocations_of_thread() {
  return n_allocations;
}

NoMemory::NoMemory() {
  has_memory = false;
}
NoMemory::~NoMemory() {
  has_memory = true;
}

}  // namespace ferry::test
