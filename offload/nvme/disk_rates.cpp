#include "offload/nvme/disk_rates.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <system_error>
#include <utility>

#include "offload/nvme/drive.h"
#include "offload/nvme/stripes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/** Extents that are under way at once: each is a part of a segment, moved as one in many requests.
 */
constexpr int64_t kExtents = 2;

/** Requests begin while others end, so more of them are made than the drive is given. They share
 * memory, for nobody looks at the bytes. */
constexpr int64_t kAhead = 4;

constexpr size_t kLargePage_bytes = 2 * kMiB;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void refuse(const fs::path& directory, int code) {
  throw Error(Fault::machine, "nvme.measure",
              fmt::format("no file can be made in '{}': {}", directory.string(),
                          std::generic_category().message(code)),
              code == EINVAL || code == EOPNOTSUPP
                  ? "its file system takes no direct transfers (O_DIRECT); name a directory on "
                    "ext4, XFS or Btrfs"
                  : "name a directory on a disk that can be written");
}

/** Data that no drive can compress. */
void fill(std::span<std::byte> bytes) {
  std::mt19937_64 random(1);
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    const uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
}

/** Extents at rising offsets of a part of the disk, over and over. */
class Walk {
 public:
  Walk(int64_t begin, int64_t end, int64_t extent_bytes)
      : begin_(begin), end_(end), extent_bytes_(extent_bytes), next_(begin) {}
  int64_t next() {
    if (next_ + extent_bytes_ > end_) next_ = begin_;
    return std::exchange(next_, next_ + extent_bytes_);
  }

 private:
  int64_t begin_, end_, extent_bytes_, next_;
};

}  // namespace

std::string_view name_of(DiskPattern pattern) {
  switch (pattern) {
    case DiskPattern::read:
      return "read";
    case DiskPattern::write:
      return "write";
    case DiskPattern::mixed:
      break;
  }
  return "mixed";
}

ScratchDisk::ScratchDisk(const std::vector<fs::path>& directories,
                         int64_t n_bytes,
                         const DiskOptions& options,
                         double fill_s,
                         int64_t window_bytes)
    : extent_bytes_(options.request_bytes *
                    std::max<int64_t>(1, options.depth * std::ssize(directories) / kExtents)),
      n_extents_(static_cast<size_t>(std::max(kExtents, window_bytes / extent_bytes_))),
      memory_(nullptr, &std::free) {
  int64_t free_bytes = INT64_MAX;
  for (const fs::path& directory : directories) {
    open_nameless(directory);
    std::error_code error;
    const auto space = fs::space(directory, error);
    if (error) refuse(directory, error.value());
    free_bytes = std::min(
        free_bytes, static_cast<int64_t>(std::min<uintmax_t>(space.available, INT64_MAX / 64)));
  }
  const auto n_files = static_cast<int64_t>(directories.size());
  // Two halves of whole extents and stripes.
  const int64_t unit = 2 * std::max(extent_bytes_, kStripe_bytes * n_files);
  n_bytes = std::min(n_bytes, free_bytes / 4 * n_files) / unit * unit;
  if (n_bytes == 0)
    throw Error(Fault::does_not_fit, "nvme.measure",
                fmt::format("there is no room to measure in: {} are free in '{}'",
                            format_bytes(free_bytes), directories.front().string()),
                "free some space, or name another directory");
  const auto n_window_bytes = static_cast<size_t>(
      round_up(static_cast<int64_t>(n_extents_) * extent_bytes_, kLargePage_bytes));
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kLargePage_bytes, n_window_bytes)));
  if (!memory_) throw std::bad_alloc();
  ::madvise(memory_.get(), n_window_bytes, MADV_HUGEPAGE);  // as a run's memory has it
  window_ = {memory_.get(), n_window_bytes};
  fill(window_);
  options_ = options;
  options_.window = window_;
  disk_ = open_disk(files_, n_bytes, options_);
  const auto start = Clock::now();
  n_filled_bytes_ = n_bytes;
  const int64_t n_written = move(DiskPattern::write, [&](int64_t n_moved) {
    return n_moved < n_bytes && (n_moved < unit || seconds_since(start) < fill_s);
  });
  n_filled_bytes_ = std::min(n_bytes, n_written / unit * unit);
  disk_->flush();
}

void ScratchDisk::use(int64_t request_bytes, int depth) {
  options_.request_bytes = request_bytes;
  options_.depth = depth;
  const int64_t n_bytes = disk_->n_bytes();
  disk_.reset();  // it holds the lock
  disk_ = open_disk(files_, n_bytes, options_);
}

void ScratchDisk::open_nameless(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) refuse(directory, error ? error.value() : ENOTDIR);
  check_file_system(directory);
  constexpr int kFlags = O_RDWR | O_DIRECT | O_CLOEXEC;
  UniqueFd file(::open(directory.c_str(), kFlags | O_TMPFILE, 0600));
  if (!file) {
    std::string name = (directory / ".ferry-disk-XXXXXX").string();
    file = UniqueFd(::mkostemp(name.data(), O_DIRECT | O_CLOEXEC));
    const int code = errno;
    if (file || code == EINVAL) ::unlink(name.c_str());
    if (!file) refuse(directory, code);
  }
  files_.push_back(fmt::format("/proc/{}/fd/{}", ::getpid(), file.get()));
  fds_.push_back(std::move(file));
}

int64_t ScratchDisk::move(DiskPattern pattern, const std::function<bool(int64_t)>& goes_on) {
  const int64_t n_bytes = n_filled_bytes_;
  const bool is_mixed = pattern == DiskPattern::mixed;
  Walk read(0, is_mixed ? n_bytes / 2 : n_bytes, extent_bytes_);
  Walk write(is_mixed ? n_bytes / 2 : 0, n_bytes, extent_bytes_);
  const auto extent_size = static_cast<size_t>(extent_bytes_);
  std::vector<DiskTicket> tickets(kExtents * kAhead);
  int64_t n_moved = 0;
  const auto await = [&](DiskTicket& ticket) {
    if (ticket == 0) return;
    disk_->wait(std::exchange(ticket, 0));
    n_moved += extent_bytes_;
  };
  for (size_t n = 0; goes_on(n_moved); ++n) {
    DiskTicket& ticket = tickets[n % tickets.size()];
    await(ticket);
    const auto extent = window_.subspan(n % n_extents_ * extent_size, extent_size);
    const bool reads = is_mixed ? n % 2 == 0 : pattern == DiskPattern::read;
    ticket = reads ? disk_->read(read.next(), extent) : disk_->write(write.next(), extent);
  }
  for (DiskTicket& ticket : tickets)
    await(ticket);
  return n_moved;
}

double ScratchDisk::rate_of(DiskPattern pattern, double seconds) {
  const auto start = Clock::now();
  const int64_t n_moved =
      move(pattern, [&](int64_t n) { return n == 0 || seconds_since(start) < seconds; });
  return static_cast<double>(n_moved) / seconds_since(start);
}

double ScratchDisk::flush_s(int n_times) {
  std::vector<double> times;
  for (int i = 0; i < n_times; ++i) {
    move(DiskPattern::write, [](int64_t n_moved) { return n_moved == 0; });
    const auto start = Clock::now();
    disk_->flush();
    times.push_back(seconds_since(start));
  }
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace ferry
