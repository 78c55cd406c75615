#pragma once
// A disk in memory that is as unkind as a disk may be: of what no flush() covered, a cut of power
// keeps any part, sector by sector, in any order, and may tear a sector. A kill of the process ends
// what is under way anyhow, and leaves what was written unsafe as it was. Bytes of a request move
// at its start or at its end, as it pleases.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "offload/nvme/disk.h"

namespace ferry::test {

/** Every call after the end of a life throws it, until start_again(). */
class LifeEnded : public std::runtime_error {
 public:
  LifeEnded() : std::runtime_error("the power is gone, or the process") {}
};

class VirtualDisk final : public Disk {
 public:
  static constexpr int64_t kSector_bytes = 512;
  enum class End { power_cut, kill };

  VirtualDisk(int64_t n_bytes, uint64_t seed);

  int64_t n_bytes() const override { return std::ssize(durable_); }
  int64_t alignment() const override { return kSector_bytes; }
  std::string name() const override { return "virtual"; }
  DiskTicket read(int64_t offset_bytes, std::span<std::byte> to) override;
  DiskTicket write(int64_t offset_bytes, std::span<const std::byte> from) override;
  void wait(DiskTicket ticket) override;
  void flush() override;

  /** The life ends in the n-th call from now on: 0 is the next. */
  void end_life_in(int64_t n_calls, End end);
  bool is_alive() const { return is_alive_; }
  void start_again();
  /** A planted fault: the n-th flush from now on does nothing; 0 is the next. */
  void skip_flush(int64_t n) { skipped_flush_ = n_flushes_ + n; }
  /** Planted damage. */
  void flip_bit(int64_t offset_bytes, int bit);
  /** From now on the n-th call throws Error(machine) in place of being done; it is told once. */
  void fail_in(int64_t n_calls) { failing_call_ = n_calls_ + n_calls; }

  /** Called once, in the next flush: stands for other threads at that moment. */
  std::function<void()> in_flush;

  int64_t n_calls() const { return n_calls_; }
  int64_t n_written_bytes() const { return n_written_bytes_; }
  int64_t n_under_way() const { return std::ssize(requests_); }

 private:
  struct Request {
    int64_t offset = 0;
    std::span<std::byte> to;  ///< empty: a write
    std::span<const std::byte> from;
    std::vector<std::byte> early;  ///< a write's bytes where they were taken at its start
    bool is_done = false;          ///< a read whose bytes moved at its start
  };
  struct Written {
    int64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  void count_call();
  void end_life(End end);
  void write_seen(int64_t offset, std::span<const std::byte> bytes);
  static std::span<const std::byte> bytes_of(const Request& request) {
    return request.early.empty() ? request.from : std::span<const std::byte>(request.early);
  }
  bool coin() { return (dice_() & 1) != 0; }

  std::mutex mutex_;
  std::mt19937_64 dice_;
  std::vector<std::byte> durable_, seen_;
  std::vector<Written> unsafe_;  ///< what was written since the last flush, in order
  std::map<DiskTicket, Request> requests_;
  DiskTicket last_ticket_ = 0;
  int64_t n_calls_ = 0, n_flushes_ = 0, n_written_bytes_ = 0;
  int64_t last_call_ = -1, failing_call_ = -1, skipped_flush_ = -1;
  End end_ = End::power_cut;
  bool is_alive_ = true;
};

}  // namespace ferry::test
