#pragma once
// The servant of a disk's requests: a ring of io_uring with a thread of its own, or threads that
// call pread and pwrite where io_uring may not be used. Private to offload/nvme.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "offload/nvme/disk_requests.h"
#include "src/base/unique_fd.h"

namespace ferry {

/** For tests: stands between a queue and the system, and is called by the queue's threads. */
struct DiskFaults {
  /** The bytes of the piece that the system is asked for, at most piece.n_bytes. */
  std::function<int64_t(const DiskPiece& piece)> n_bytes_asked;
  /** The queue takes this for the system's answer, bytes or -errno; `result` was its own. */
  std::function<int64_t(const DiskPiece& piece, int64_t result)> answer;

  int64_t asked(const DiskPiece& piece) const {
    return n_bytes_asked ? n_bytes_asked(piece) : piece.n_bytes;
  }
  int64_t answered(const DiskPiece& piece, int64_t result) const {
    return answer ? answer(piece, result) : result;
  }
};

/** Everything that a queue's threads use: it lives as long as the last of them. */
struct DiskQueueState {
  DiskQueueState(DiskRequests::Options options) : requests(std::move(options)) {}
  DiskRequests requests;
  std::vector<UniqueFd> files;  ///< in the order of the stripes
  std::span<std::byte> window;  ///< memory to register
  DiskFaults faults;
};

/** Serves the requests from its making on. Its end closes them and waits for what is under way;
 * threads that a drive holds up are left to themselves. */
class DiskQueue {
 public:
  virtual ~DiskQueue() = default;
  /** Why the window is not registered, in words; empty where it is, or where there is none. */
  virtual std::string why_unregistered() const { return {}; }
};

/** Null, and the errno in `code`, where io_uring may not be used; ENOSYS too where this build does
 * without it. */
std::unique_ptr<DiskQueue> make_uring_queue(std::shared_ptr<DiskQueueState> state, int& code);
std::unique_ptr<DiskQueue> make_pool_queue(std::shared_ptr<DiskQueueState> state);

}  // namespace ferry
