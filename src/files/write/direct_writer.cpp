#include "src/files/write/direct_writer.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "src/base/process/movement.h"

namespace ferry {
namespace {

constexpr int64_t kWrite_bytes =
    static_cast<int64_t>(WriteBehind::kPiece_slots) * WriteBehind::kSlot_bytes;

int64_t page_below(int64_t offset) {
  return offset / DirectWriter::kPage_bytes * DirectWriter::kPage_bytes;
}

}  // namespace

int write_all(int fd, int64_t offset_bytes, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), offset_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    note_movement();
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset_bytes += count;
  }
  return 0;
}

DirectWriter::DirectWriter(const std::filesystem::path& file, int cached, WriteBehind& behind)
    : direct_(::open(file.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC | O_NOFOLLOW)),
      cached_(cached),
      is_direct_(static_cast<bool>(direct_)),
      behind_(behind) {}

DirectWriter::~DirectWriter() {
  behind_.give_back(open_.slots);
  int none = 0;
  failure_.compare_exchange_strong(none, ECANCELED);  // for nobody
  std::unique_lock lock(mutex_);
  piece_ended_.wait(lock, [&] { return n_under_way_ == 0; });
}

int DirectWriter::fill(int64_t offset_bytes, int64_t n_bytes, const FillParts& fill_parts) {
  if (open_.slots.empty() || offset_bytes != open_.end_bytes) {
    end_run();
    open_ = {page_below(offset_bytes), offset_bytes, offset_bytes, {}};
  }
  while (n_bytes > 0) {
    if (failure_ != 0) return failure_;
    const int64_t begin = open_.end_bytes;
    const int64_t end = std::min(begin + n_bytes, open_.base_bytes + kWrite_bytes);
    while (open_.base_bytes + static_cast<int64_t>(open_.slots.size()) * WriteBehind::kSlot_bytes <
           end)
      open_.slots.push_back(behind_.take());
    fill_parts(parts_of(open_, begin, end));
    open_.end_bytes = end;
    n_bytes -= end - begin;
    if (end < open_.base_bytes + kWrite_bytes) continue;
    hand_over();
    open_ = {end, end, end, {}};
  }
  return failure_;
}

void DirectWriter::end_run() {
  if (open_.end_bytes > open_.begin_bytes)
    hand_over();
  else
    behind_.give_back(open_.slots);  // a fill that threw
  open_ = {};
}

int DirectWriter::finish() {
  end_run();
  std::unique_lock lock(mutex_);
  piece_ended_.wait(lock, [&] { return n_under_way_ == 0; });
  return failure_;
}

void DirectWriter::hand_over() {
  auto slots = open_.slots;
  std::function<void()> job = [this, piece = std::move(open_)] { write_handed_over(piece); };
  std::lock_guard lock(mutex_);
  behind_.submit(std::move(slots), std::move(job));
  ++n_under_way_;
}

void DirectWriter::write_handed_over(const Piece& piece) {
  int code = failure_;  // after one the file is for nobody: a disk that fails slowly is spared
  try {
    if (code == 0) code = write(piece);
  } catch (const std::bad_alloc&) {
    code = ENOMEM;
  }
  int none = 0;
  if (code != 0) failure_.compare_exchange_strong(none, code);
  std::lock_guard lock(mutex_);
  --n_under_way_;
  piece_ended_.notify_all();
}

std::vector<std::span<std::byte>> DirectWriter::parts_of(const Piece& piece,
                                                         int64_t begin_bytes,
                                                         int64_t end_bytes) {
  std::vector<std::span<std::byte>> parts;
  while (begin_bytes < end_bytes) {
    const int64_t at = begin_bytes - piece.base_bytes, in_slot = at % WriteBehind::kSlot_bytes;
    const int64_t n = std::min(end_bytes - begin_bytes, WriteBehind::kSlot_bytes - in_slot);
    parts.emplace_back(piece.slots[static_cast<size_t>(at / WriteBehind::kSlot_bytes)] + in_slot,
                       static_cast<size_t>(n));
    begin_bytes += n;
  }
  return parts;
}

/** A piece that is not at its run's end is full: its end is a page's. */
int DirectWriter::write(const Piece& piece) {
  const int64_t begin = piece.begin_bytes, end = piece.end_bytes;
  const int64_t pages_begin = std::min(end, page_below(begin + kPage_bytes - 1)),
                pages_end = std::max(pages_begin, page_below(end));
  // A few pages are not worth a wait for the disk each.
  constexpr int64_t kDirect_bytes_min = 256 << 10;
  if (!is_direct_ || pages_end - pages_begin < kDirect_bytes_min)
    return write_cached(piece, begin, end);
  if (const int code = write_cached(piece, begin, pages_begin)) return code;
  if (const int code = write_pages(piece, pages_begin, pages_end)) return code;
  return write_cached(piece, pages_end, end);
}

int DirectWriter::write_pages(const Piece& piece, int64_t begin_bytes, int64_t end_bytes) {
  std::vector<iovec> vectors;
  for (const auto part : parts_of(piece, begin_bytes, end_bytes))
    vectors.push_back({part.data(), part.size()});
  ssize_t count;
  do {
    count = ::pwritev(direct_.get(), vectors.data(), static_cast<int>(vectors.size()), begin_bytes);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno != EINVAL) return errno;
  note_movement();
  // A disk of larger sectors takes no such write. From now on the page cache takes all, as it takes
  // the rest of a short write.
  if (count < 0) is_direct_ = false;
  return write_cached(piece, begin_bytes + std::max<ssize_t>(0, count), end_bytes);
}

int DirectWriter::write_cached(const Piece& piece, int64_t begin_bytes, int64_t end_bytes) {
  for (const auto part : parts_of(piece, begin_bytes, end_bytes)) {
    if (const int code = write_all(cached_, begin_bytes, part)) return code;
    begin_bytes += static_cast<int64_t>(part.size());
  }
  return 0;
}

}  // namespace ferry
