#include "src/term/byte_progress.h"

namespace ferry::term {

void ByteProgress::update(int64_t n_done_bytes) {
  constexpr auto kWorthALine = std::chrono::seconds(2);
  constexpr int64_t kMegabyte = 1'000'000;
  if (!line_) {
    if (std::chrono::steady_clock::now() - start_ < kWorthALine) return;
    line_.emplace(stderr, detect_terminal(2), what_, (n_bytes_ + kMegabyte - 1) / kMegabyte, "MB",
                  n_done_bytes / kMegabyte);
  }
  line_->update(n_done_bytes / kMegabyte);
}

}  // namespace ferry::term
