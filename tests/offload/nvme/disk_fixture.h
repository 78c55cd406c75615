#pragma once
// What the tests of disks share: aligned memory with bytes that tell their place, a directory that
// takes direct transfers, and the three ways in which bytes go.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "offload/nvme/open_disk.h"
#include "offload/nvme/stripes.h"
#include "src/base/bytes.h"
#include "tests/files/test_files.h"

namespace ferry::test {

class AlignedMemory {
 public:
  explicit AlignedMemory(int64_t n_bytes)
      : bytes_(static_cast<std::byte*>(
                   std::aligned_alloc(kDiskAlignment_bytes, static_cast<size_t>(n_bytes))),
               &std::free),
        all_(bytes_.get(), static_cast<size_t>(n_bytes)) {
    std::ranges::fill(all_, std::byte{0xA5});
  }
  std::span<std::byte> all() const { return all_; }
  std::span<std::byte> part(int64_t begin, int64_t n_bytes) const {
    return all_.subspan(static_cast<size_t>(begin), static_cast<size_t>(n_bytes));
  }
  /** To the end of the process: a drive that was given up may still use it. */
  void keep() {
    static std::vector<Bytes> kept;
    kept.push_back(std::move(bytes_));
  }

 private:
  using Bytes = std::unique_ptr<std::byte, decltype(&std::free)>;
  Bytes bytes_;
  std::span<std::byte> all_;
};

/** Eight bytes that no other place of the disk and no other seed has. */
inline uint64_t word_at(int64_t offset_bytes, uint64_t seed) {
  uint64_t x = static_cast<uint64_t>(offset_bytes) * 0x9E3779B97F4A7C15 + seed;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  return x ^ (x >> 27);
}

inline void fill(std::span<std::byte> bytes, int64_t offset_bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes.size(); at += 8) {
    const uint64_t word = word_at(offset_bytes + static_cast<int64_t>(at), seed);
    std::memcpy(bytes.data() + at, &word, 8);
  }
}

/** The offset of the first word that is not fill()'s, or -1. */
inline int64_t first_wrong(std::span<const std::byte> bytes, int64_t offset_bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes.size(); at += 8) {
    const uint64_t word = word_at(offset_bytes + static_cast<int64_t>(at), seed);
    if (std::memcmp(bytes.data() + at, &word, 8) != 0)
      return offset_bytes + static_cast<int64_t>(at);
  }
  return -1;
}

/** Whether files in this directory may be opened for direct transfers. */
inline bool takes_direct(const std::filesystem::path& directory) {
  const std::string file = (directory / "direct").string();
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  ::unlink(file.c_str());
  return fd >= 0 && ::close(fd) == 0;
}

enum class Transport { ring, registered, pool };

inline std::string name_of(Transport transport) {
  return transport == Transport::ring         ? "ring"
         : transport == Transport::registered ? "registered"
                                              : "pool";
}

inline std::string transport_of(Transport transport) {
  return transport == Transport::ring         ? "io_uring"
         : transport == Transport::registered ? "io_uring, registered buffers"
                                              : "pread and pwrite";
}

/** A test with a directory and a window of memory; skipped where the temporary directory takes no
 * direct transfers. */
class DiskTest : public testing::Test {
 protected:
  static constexpr int64_t kWindow_bytes = 8 * kMiB;

  void SetUp() override {
    if (!takes_direct(directory_.path()))
      GTEST_SKIP() << "the temporary directory takes no direct transfers (O_DIRECT)";
  }
  std::filesystem::path file(std::string_view name = "blocks") const { return directory_ / name; }

  TempDir directory_;
  AlignedMemory window_{kWindow_bytes};
};

class EachTransport : public DiskTest, public testing::WithParamInterface<Transport> {
 protected:
  /** Null, and the test is skipped, where the machine does not have the transport. */
  std::unique_ptr<FileDisk> open(const std::vector<std::filesystem::path>& files,
                                 int64_t n_bytes,
                                 DiskOptions options = {}) {
    options.uses_io_uring = GetParam() != Transport::pool;
    // Half of it, for memory that is not registered goes on beside.
    if (GetParam() == Transport::registered) options.window = window_.part(0, kWindow_bytes / 2);
    auto disk = open_disk(files, n_bytes, options);
    if (disk->transport() != transport_of(GetParam())) {
      skip("this machine has '" + disk->transport() + "' for '" + transport_of(GetParam()) + "'");
      return nullptr;
    }
    return disk;
  }

 private:
  static void skip(const std::string& why) { GTEST_SKIP() << why; }
};

}  // namespace ferry::test
