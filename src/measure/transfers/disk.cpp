#include "src/measure/transfers/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/unique_fd.h"
#include "src/measure/timing.h"

namespace ferry::measure {
namespace {

namespace fs = std::filesystem;

constexpr int kThreads = 4;  ///< as many as write a checkpoint
constexpr int64_t kPiece_bytes = 4 * kMiB;
constexpr size_t kPage_bytes = 4096;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Piece = std::unique_ptr<std::byte, Free>;

/** Data that no drive can compress. */
Piece make_piece(uint64_t seed) {
  auto* const data =
      static_cast<std::byte*>(std::aligned_alloc(kPage_bytes, static_cast<size_t>(kPiece_bytes)));
  if (!data) throw std::bad_alloc();
  std::mt19937_64 random(seed);
  for (int64_t at = 0; at < kPiece_bytes; at += 8) {
    const uint64_t word = random();
    std::memcpy(data + at, &word, sizeof word);
  }
  return Piece(data);
}

[[noreturn]] void refuse(const fs::path& directory, std::string_view what, int code) {
  throw Error(Fault::machine, "measure.disk",
              fmt::format("'{}': {}: {}", directory.string(), what, std::strerror(code)),
              code == EINVAL || code == EOPNOTSUPP
                  ? "its file system takes no direct writes (O_DIRECT); the rest goes on without it"
                  : "start in a directory on a disk that can be written");
}

/** Nobody sees it, and it is gone however this process ends. */
UniqueFd open_nameless(const fs::path& directory) {
  constexpr int kFlags = O_RDWR | O_DIRECT | O_CLOEXEC;
  UniqueFd file(::open(directory.c_str(), kFlags | O_TMPFILE, 0600));
  if (file) return file;
  std::string name = (directory / ".ferry-disk-XXXXXX").string();
  file = UniqueFd(::mkostemp(name.data(), O_DIRECT | O_CLOEXEC));
  if (!file) refuse(directory, "no file can be made", errno);
  ::unlink(name.c_str());
  return file;
}

/** Moves whole pieces at rising offsets from several threads, until all or the time is up; bytes
 * per second. `move(piece, offset)` gives what pwrite or pread does. */
template <class Move>
double run(const fs::path& directory,
           std::string_view what,
           std::vector<Piece>& pieces,
           int64_t n_pieces,
           double seconds,
           int64_t& n_moved,
           const Move& move) {
  std::atomic<int64_t> next{0}, done{0};
  std::atomic<int> failure{0};
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (Piece& piece : pieces)
      threads.emplace_back([&] {
        while (failure == 0 && seconds_since(start) < seconds) {
          const int64_t i = next.fetch_add(1);
          if (i >= n_pieces) return;
          const ssize_t count = move(piece.get(), i * kPiece_bytes);
          if (count == kPiece_bytes) {
            ++done;
          } else {
            failure = count < 0 ? errno : ENOSPC;
          }
        }
      });
  }
  n_moved = std::min<int64_t>(next, n_pieces);
  if (done == 0) refuse(directory, what, failure == 0 ? ETIMEDOUT : failure.load());
  return static_cast<double>(done * kPiece_bytes) / seconds_since(start);
}

}  // namespace

DiskProfile measure_disk(const fs::path& directory, int64_t most_bytes, double seconds) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (!error) most_bytes = std::min(most_bytes, static_cast<int64_t>(space.available / 4));
  const int64_t n_pieces = most_bytes / kPiece_bytes;
  if (n_pieces < 1) refuse(directory, "there is no room to measure in", ENOSPC);
  const UniqueFd file = open_nameless(directory);
  std::vector<Piece> pieces;
  for (int i = 0; i < kThreads; ++i)
    pieces.push_back(make_piece(static_cast<uint64_t>(i)));

  DiskProfile disk{.directory = fs::absolute(directory, error).lexically_normal().string()};
  int64_t n_written = 0, n_read = 0;
  disk.write_bytes_per_s =
      rounded(run(directory, "nothing could be written", pieces, n_pieces, seconds * 0.6, n_written,
                  [&](const std::byte* piece, int64_t offset) {
                    return ::pwrite(file.get(), piece, static_cast<size_t>(kPiece_bytes), offset);
                  }));
  disk.read_bytes_per_s =
      rounded(run(directory, "nothing could be read back", pieces, n_written, seconds * 0.4, n_read,
                  [&](std::byte* piece, int64_t offset) {
                    return ::pread(file.get(), piece, static_cast<size_t>(kPiece_bytes), offset);
                  }));
  return disk;
}

}  // namespace ferry::measure
