#pragma once
// A status line for bytes that are read, for what may be done at once or take hours: it appears
// only when the work has gone on for a while.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "src/term/progress.h"

namespace ferry::term {

class ByteProgress {
 public:
  ByteProgress(std::string what, int64_t n_bytes) : what_(std::move(what)), n_bytes_(n_bytes) {}
  ~ByteProgress() {
    if (line_) line_->finish();
  }
  ByteProgress(const ByteProgress&) = delete;
  ByteProgress& operator=(const ByteProgress&) = delete;

  /** By one thread at a time. */
  void update(int64_t n_done_bytes);

 private:
  std::string what_;
  int64_t n_bytes_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<Progress> line_;
};

}  // namespace ferry::term
