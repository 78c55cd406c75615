#pragma once
// The requests of one disk between the threads that make them and the queue that serves them: cuts
// them into pieces, keeps which have ended and how, and sees when the drive has stopped answering.
// Private to offload/nvme.
//
//   caller:  ticket = requests.add(...);  requests.wait(ticket);
//   queue:   while (auto piece = requests.next_piece()) ...;  requests.take_result(*piece, result);
//
// Any thread may call any function.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "offload/nvme/disk.h"
#include "offload/nvme/stripes.h"

namespace ferry {

enum class DiskOperation : uint8_t { read, write, flush };

/** One transfer between memory and a file, as the system is asked for it; a flush has no bytes. */
struct DiskPiece {
  DiskOperation operation = DiskOperation::read;
  int file = 0;
  int64_t offset_bytes = 0;  ///< in that file
  std::byte* memory = nullptr;
  int64_t n_bytes = 0;
  size_t request = 0;  ///< it is a part of
  int flight = 0;      ///< from 0 to n_flights - 1: no other piece under way has the same
};

class DiskRequests {
 public:
  struct Options {
    std::vector<std::string> files;  ///< their names, for messages
    int64_t piece_bytes = kMiB;      ///< the most that a piece moves
    int n_flights = 16;              ///< pieces that may be under way at once
    std::chrono::milliseconds deadline{60'000};
  };
  explicit DiskRequests(Options options);
  DiskRequests(const DiskRequests&) = delete;
  DiskRequests& operator=(const DiskRequests&) = delete;

  DiskTicket add(DiskOperation operation, int64_t offset_bytes, std::byte* memory, int64_t n_bytes);
  void wait(DiskTicket ticket);
  /** Gives out no more pieces, and blocks until none is under way. False where the drive does not
   * answer. */
  bool close();

  int n_flights() const { return options_.n_flights; }
  /** The queue's: the next piece, if there is one and a flight for it. Else `wake` will be called,
   * by another thread, when one may be there or the requests are closed. */
  std::optional<DiskPiece> next_piece();
  void on_wake(std::function<void()> wake);
  /** The same for queues of threads: blocks for a piece. Nothing once closed. */
  std::optional<DiskPiece> await_piece();
  /** `result` is the system's word on a piece: the bytes that it moved, or -errno. False: `piece`
   * is the rest, to be asked for again. True: the piece has ended, one way or the other. */
  bool take_result(DiskPiece& piece, int64_t result);
  /** Wakes those whose requests have ended: after the queue has given the drive more to do. */
  void announce();
  /** Nothing will be served any more. */
  void lose(int code);
  bool is_closed() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Request {
    uint32_t generation = 0;
    DiskOperation operation = DiskOperation::read;
    int64_t offset_bytes = 0;
    std::byte* memory = nullptr;
    int64_t n_bytes = 0;  ///< of a flush: the files
    int64_t n_cut = 0;    ///< of these, given out as pieces or given up
    int n_under_way = 0;  ///< pieces
    int code = 0;         ///< of the first piece that failed
    Stripes::Place failed;
    Clock::time_point added;

    bool has_ended() const { return n_under_way == 0 && n_cut == n_bytes; }
  };
  struct Flight {
    bool is_under_way = false;
    Clock::time_point began;
  };

  std::optional<DiskPiece> cut_piece();
  void end(const DiskPiece& piece, int code);
  Stripes::Place next_place(const Request& request) const;
  Clock::time_point patience_end(Clock::time_point added) const;
  /** True where the drive has stopped answering by now. */
  bool sees_loss(Clock::time_point added);
  [[noreturn]] void fail(const Request& request, int code, const Stripes::Place& place) const;

  const Options options_;
  const Stripes stripes_;
  mutable std::mutex mutex_;
  std::condition_variable ended_, may_cut_;
  std::deque<Request> requests_;
  std::vector<size_t> free_requests_;
  std::deque<size_t> waiting_;  ///< requests with pieces to cut; the first is being cut
  std::vector<Flight> flights_;
  std::vector<int> free_flights_;
  Clock::time_point last_end_;
  std::function<void()> wake_;
  bool wants_wake_ = false, has_news_ = false, is_closed_ = false;
  int lost_code_ = 0;
};

}  // namespace ferry
