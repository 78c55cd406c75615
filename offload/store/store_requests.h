#pragma once
// Requests to a drive as the store makes them: one and its end, a few at once, many with some of
// them ahead. None is left under way when one fails. Private to the store.

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "offload/nvme/disk.h"

namespace ferry {

/** The most requests that run_ahead() has under way: enough for a drive to be busy. */
inline constexpr int64_t kRequests_ahead = 8;

/** Starts n requests in order, and ends each in the same order. The first failure is rethrown when
 * all that were started have ended. */
template <typename Start, typename End>
void run_ahead(int64_t n, Start start, End end) {
  std::array<std::invoke_result_t<Start, int64_t>, kRequests_ahead> under_way;
  int64_t n_started = 0, n_ended = 0;
  std::exception_ptr failure;
  while (n_ended < n_started || (n_started < n && !failure)) {
    try {
      if (n_started < n && !failure && n_started - n_ended < kRequests_ahead) {
        under_way[static_cast<size_t>(n_started % kRequests_ahead)] = start(n_started);
        ++n_started;
      } else {
        end(under_way[static_cast<size_t>(n_ended++ % kRequests_ahead)]);
      }
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

inline void read_now(Disk& disk, int64_t offset, std::span<std::byte> to) {
  disk.wait(disk.read(offset, to));
}

struct DiskWrite {
  int64_t offset = 0;
  std::span<const std::byte> from;
};
inline void write_now(Disk& disk, std::initializer_list<DiskWrite> writes) {
  run_ahead(
      std::ssize(writes),
      [&](int64_t i) {
        const DiskWrite& write = writes.begin()[i];
        return disk.write(write.offset, write.from);
      },
      [&](DiskTicket ticket) { disk.wait(ticket); });
}

}  // namespace ferry
