#include "tests/files/no_memory.h"

#include <cstdlib>
#include <new>

namespace {

thread_local bool has_memory = true;
thread_local int64_t n_allocations = 0;

}  // namespace

// Replaces new for the whole program, the C++ library too. All forms but the aligned ones: a
// sanitizer has forms of its own, and sees where memory of one comes to the delete of another. Not
// inlined: the compiler would take free() beside new for a slip.
[[gnu::noinline]] void* operator new(std::size_t n_bytes, const std::nothrow_t&) noexcept {
  ++n_allocations;
  return has_memory ? std::malloc(n_bytes > 0 ? n_bytes : 1) : nullptr;
}
[[gnu::noinline]] void* operator new(std::size_t n_bytes) {
  void* const memory = operator new(n_bytes, std::nothrow);
  if (!memory) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new[](std::size_t n_bytes) {
  return operator new(n_bytes);
}
[[gnu::noinline]] void* operator new[](std::size_t n_bytes, const std::nothrow_t& none) noexcept {
  return operator new(n_bytes, none);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, const std::nothrow_t&) noexcept {
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
