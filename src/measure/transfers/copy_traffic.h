#pragma once
// Copies between host memory and the device that go on, one queued behind the other as the pager's
// do, until stopped. A thread of their own keeps the queues filled; it alone calls the device
// meanwhile. Private to src/measure.
//
//   CopyTraffic traffic(bench, {.piece_bytes = 64 * kMiB});
//   ...
//   traffic.stop();
//   double rate = traffic.bytes_per_s(QueueId::h2d);

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "src/measure/bench.h"

namespace ferry::measure {

class CopyTraffic {
 public:
  struct Options {
    bool h2d = true, d2h = true;
    int64_t piece_bytes = 0;  ///< of one copy; at most a whole arena of the bench
  };
  /** Returns when all directions run. Takes the bench's `gpu` arena. */
  CopyTraffic(Bench& bench, const Options& options);
  ~CopyTraffic();
  CopyTraffic(const CopyTraffic&) = delete;
  CopyTraffic& operator=(const CopyTraffic&) = delete;

  /** Blocks until copies of each direction were seen complete `n` times after `from`. */
  void await(int n, Clock::time_point from = {});
  /** Ends it; rethrows what went wrong. */
  void stop();
  /** After stop(): of what completed after `from`. */
  double bytes_per_s(QueueId queue, Clock::time_point from = {}) const;

 private:
  /** At a look at the events, so many groups had completed since the one before. */
  struct Look {
    Clock::time_point time;
    int n_groups;
  };
  struct Direction {
    QueueId queue = QueueId::h2d;
    std::byte *host = nullptr, *gpu = nullptr;
    int64_t room_bytes = 0, at_bytes = 0;
    std::deque<EventId> under_way;
    std::vector<EventId> free;
    std::vector<Look> looks;  ///< guarded; those with something new
  };
  void work();
  void keep_filled(Direction& direction);
  void submit_group(Direction& direction);

  Device& device_;
  int64_t piece_bytes_;
  int n_pieces_;  ///< copies between two events: small ones come many at a time
  std::vector<Direction> directions_;
  std::atomic<bool> stops_ = false;
  mutable std::mutex mutex_;
  std::condition_variable progressed_;
  std::exception_ptr failure_;  ///< guarded
  std::thread thread_;
};

}  // namespace ferry::measure
