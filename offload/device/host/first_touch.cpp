#include "offload/device/host/first_touch.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "src/base/bytes.h"
#include "src/base/process/threads.h"

namespace ferry {

void touch_first(std::byte* data, int64_t n_bytes) {
  constexpr int64_t kPage_bytes = 4 * kKiB;
  // A fresh page is zero already: one byte of each makes the system find it. Volatile, or nothing
  // would be written.
  for (int64_t at = 0; at < n_bytes; at += kPage_bytes)
    static_cast<volatile std::byte*>(data)[at] = std::byte{0};
}

void touch_first(WorkerPool& pool, std::byte* data, int64_t n_bytes) {
  constexpr int64_t kPiece_bytes = 2 * kMiB;  // a large page is one fault
  const int64_t n_pieces = (n_bytes + kPiece_bytes - 1) / kPiece_bytes;
  const auto touch_piece = [=](int64_t i) {
    const int64_t begin = i * kPiece_bytes;
    touch_first(data + begin, std::min(kPiece_bytes, n_bytes - begin));
  };
  if (pool.n_nodes() > 1) return pool.parallel_for(n_pieces, touch_piece);
  // Memory is the same whoever touches it; the pool may have one worker, or may be at work.
  const int64_t n_threads = std::min<int64_t>({16, n_usable_threads(), n_pieces});
  std::vector<std::jthread> threads;
  for (int64_t t = 0; t < n_threads; ++t)
    threads.emplace_back([=] {
      for (int64_t i = t; i < n_pieces; i += n_threads)
        touch_piece(i);
    });
}

}  // namespace ferry
