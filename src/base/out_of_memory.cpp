#include "src/base/out_of_memory.h"

#include <cerrno>
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

}  // namespace

std::optional<Error> out_of_memory(const std::exception& e) {
  if (dynamic_cast<const Error*>(&e) || !says_no_memory(e)) return std::nullopt;
  const std::string_view text = e.what();
  return Error(Fault::does_not_fit, "memory.host",
               "host memory ran out: " + std::string(text.substr(0, text.find('\n'))),
               kNoMemoryHint);
}

}  // namespace ferry
