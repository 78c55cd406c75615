#include "src/base/process/out_of_memory.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

namespace ferry {
namespace {

bool says_no_memory(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e)) return true;
  // EAGAIN is what a thread without room for its stack gives.
  if (const auto* system = dynamic_cast<const std::system_error*>(&e))
    return system->code().value() == ENOMEM || system->code().value() == EAGAIN;
  // LibTorch's allocator; oneTBB's threads.
  const std::string_view text = e.what();
  for (std::string_view part :
       {"can't allocate memory", "not enough memory", "pthread_create has failed"})
    if (text.find(part) != std::string_view::npos) return true;
  return false;
}

std::atomic<void*> reserve{nullptr};

/** Called by `new` where it finds no memory. */
void give_reserve_free() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

std::terminate_handler before = nullptr;

/** Nothing here needs memory. */
void end_without_memory() {
  try {
    if (const auto current = std::current_exception()) std::rethrow_exception(current);
  } catch (const std::exception& e) {
    if (dynamic_cast<const Error*>(&e) || !says_no_memory(e)) {
      if (before) before();
      std::abort();
    }
    for (std::string_view part : {std::string_view("ferry: [memory.host] host memory ran out - "),
                                  std::string_view(kNoMemoryHint), std::string_view("\n")})
      [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, part.data(), part.size());
    std::_Exit(static_cast<int>(Fault::does_not_fit));
  } catch (...) {
  }
  if (before) before();
  std::abort();
}

}  // namespace

void end_on_lost_memory() {
  before = std::set_terminate(end_without_memory);
}

void keep_memory_reserve() {
  constexpr size_t kReserve_bytes = 1 << 20;
  std::set_new_handler(give_reserve_free);
  if (reserve.load()) return;
  void* const kept = std::malloc(kReserve_bytes);
  void* none = nullptr;
  if (!reserve.compare_exchange_strong(none, kept)) std::free(kept);
}

std::optional<Error> out_of_memory(const std::exception& e) {
  if (dynamic_cast<const Error*>(&e) || !says_no_memory(e)) return std::nullopt;
  const std::string_view text = e.what();
  return Error(Fault::does_not_fit, "memory.host",
               "host memory ran out: " + std::string(text.substr(0, text.find('\n'))),
               kNoMemoryHint);
}

}  // namespace ferry
