#include "src/files/direct_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/error.h"

namespace ferry {
namespace {

int64_t page_below(int64_t offset) {
  return offset / DirectWriter::kPage_bytes * DirectWriter::kPage_bytes;
}

}  // namespace

int write_all(int fd, int64_t offset_bytes, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), offset_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset_bytes += count;
  }
  return 0;
}

DirectWriter::DirectWriter(const std::filesystem::path& file,
                           int cached,
                           std::span<std::byte> buffer)
    : direct_(::open(file.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC)),
      cached_(cached),
      buffer_(buffer) {
  FERRY_CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % kPage_bytes == 0 && !buffer.empty() &&
                  buffer.size() % kPage_bytes == 0,
              "a buffer of {} bytes, not of whole pages", buffer.size());
}

int DirectWriter::write(int64_t offset_bytes, std::span<const std::byte> bytes) {
  if (!in_run_) {
    in_run_ = true;
    base_ = page_below(offset_bytes);
    begin_ = end_ = offset_bytes;
  }
  FERRY_CHECK(offset_bytes == end_, "a run at {} goes on at {}", end_, offset_bytes);
  while (!bytes.empty()) {
    const auto filled = static_cast<size_t>(end_ - base_);
    const size_t n = std::min(bytes.size(), buffer_.size() - filled);
    std::memcpy(buffer_.data() + filled, bytes.data(), n);
    bytes = bytes.subspan(n);
    end_ += static_cast<int64_t>(n);
    if (filled + n < buffer_.size()) continue;
    if (const int code = write_out(/*is_end=*/false)) return code;
  }
  return 0;
}

int DirectWriter::end_run() {
  in_run_ = false;
  return write_out(/*is_end=*/true);
}

/** A buffer that is not at its run's end is full: its end is a page's. */
int DirectWriter::write_out(bool is_end) {
  const auto piece = [&](int64_t from, int64_t to) {
    return buffer_.subspan(static_cast<size_t>(from - base_), static_cast<size_t>(to - from));
  };
  const int64_t pages_begin = std::min(end_, page_below(begin_ + kPage_bytes - 1)),
                pages_end = std::max(pages_begin, page_below(end_));
  if (const int code = write_all(cached_, begin_, piece(begin_, pages_begin))) return code;
  if (const int code = write_pages(pages_begin, pages_end)) return code;
  if (is_end) {
    if (const int code = write_all(cached_, pages_end, piece(pages_end, end_))) return code;
  }
  base_ = begin_ = end_;
  return 0;
}

int DirectWriter::write_pages(int64_t begin, int64_t end) {
  if (begin == end) return 0;
  const auto pages =
      buffer_.subspan(static_cast<size_t>(begin - base_), static_cast<size_t>(end - begin));
  // A few pages are not worth a wait for the disk each.
  constexpr int64_t kDirect_bytes_min = 256 << 10;
  if (direct_ && end - begin >= kDirect_bytes_min) {
    const int code = write_all(direct_.get(), begin, pages);
    // A disk of larger sectors, or the rest of a short write: the cache takes everything.
    if (code != EINVAL) return code;
    direct_ = UniqueFd();
  }
  return write_all(cached_, begin, pages);
}

}  // namespace ferry
