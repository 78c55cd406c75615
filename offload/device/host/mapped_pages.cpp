#include "offload/device/host/mapped_pages.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {

MappedPages::MappedPages(int64_t n_bytes, std::string_view what, std::string_view cure)
    : n_bytes_(round_up(n_bytes, 4 * kKiB)) {
  constexpr int64_t kLargePage_bytes = 2 * kMiB;
  if (n_bytes == 0) return;
  const int64_t mapped_bytes = n_bytes_ + kLargePage_bytes;
  void* const mapped = mmap(nullptr, static_cast<size_t>(mapped_bytes), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw Error(Fault::does_not_fit, "device.reserve",
                fmt::format("no {} of {}: {}", format_bytes(n_bytes), what, std::strerror(errno)),
                std::string(cure));
  auto* const begin = static_cast<std::byte*>(mapped);
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(mapped));
  const int64_t before = round_up(address, kLargePage_bytes) - address;
  const int64_t after = kLargePage_bytes - before;
  data_ = begin + before;
  if (before > 0) munmap(begin, static_cast<size_t>(before));
  if (after > 0) munmap(data_ + n_bytes_, static_cast<size_t>(after));
  // Small pages serve too, where the system has no huge ones.
  madvise(data_, static_cast<size_t>(n_bytes_), MADV_HUGEPAGE);
}

MappedPages::~MappedPages() {
  if (data_) munmap(data_, static_cast<size_t>(n_bytes_));
}

}  // namespace ferry
