// The ring: one thread submits and completes. Between completions it sleeps in the kernel; a
// request that is added meanwhile wakes it through an eventfd that the ring polls.

#include <fmt/format.h>
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <future>
#include <system_error>
#include <thread>

#include "offload/nvme/disk_queue.h"

namespace ferry {
namespace {

// Linux 6.0 and 6.1 brought these; older headers of liburing lack the names.
constexpr unsigned kSingleIssuer = 1U << 12, kDeferTaskrun = 1U << 13;
/** The most that the kernel takes as one registered buffer. */
constexpr int64_t kRegistered_bytes = kGiB;
constexpr uint64_t kWakeTag = UINT64_MAX;

/** A ring may lie where a closed one lay. The thread sanitizer does not see liburing unmap that:
 * here it sees which came first. */
std::atomic<int64_t> n_closed_rings{0};

struct Opened {
  int code = 0;  ///< errno of the ring that could not be made
  std::string why_unregistered;
};

class Ring {
 public:
  explicit Ring(DiskQueueState& state, int wake)
      : state_(state), wake_(wake), left_(static_cast<size_t>(state.requests.n_flights())) {}
  ~Ring() {
    if (!is_open_) return;
    // Files that a closing ring still holds cannot be unmounted for some milliseconds.
    if (has_files_) io_uring_unregister_files(&ring_);
    io_uring_queue_exit(&ring_);
    n_closed_rings.fetch_add(1, std::memory_order_release);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  Opened open();
  /** Until the requests are closed and nothing is under way. */
  void serve();

 private:
  int make_ring();
  bool knows_operations();
  std::string register_window();
  void submit(const DiskPiece& piece);
  void submit_poll();
  void complete(const io_uring_cqe& cqe);
  int registered_index(const DiskPiece& piece, int64_t n_bytes) const;

  DiskQueueState& state_;
  const int wake_;
  io_uring ring_{};
  bool is_open_ = false, has_files_ = false, has_window_ = false, is_polling_ = false;
  int n_under_way_ = 0;
  std::vector<DiskPiece> left_;  ///< by flight: what is still to be moved
};

int Ring::make_ring() {
  const auto n_entries = static_cast<unsigned>(state_.requests.n_flights() + 1);
  int result = 0;
  n_closed_rings.load(std::memory_order_acquire);
  for (const unsigned flags : {kSingleIssuer | kDeferTaskrun, 0U}) {
    result = io_uring_queue_init(n_entries, &ring_, flags);
    if (result != -EINVAL) break;
  }
  return -result;
}

/** All that is used has been there since Linux 5.6. */
bool Ring::knows_operations() {
  io_uring_probe* const probe = io_uring_get_probe_ring(&ring_);
  if (!probe) return false;
  const bool knows = io_uring_opcode_supported(probe, IORING_OP_READ) &&
                     io_uring_opcode_supported(probe, IORING_OP_WRITE);
  io_uring_free_probe(probe);
  return knows;
}

std::string Ring::register_window() {
  if (state_.window.empty()) return {};
  std::vector<iovec> parts;
  for (auto rest = state_.window; !rest.empty();) {
    const size_t n_bytes = std::min(rest.size(), static_cast<size_t>(kRegistered_bytes));
    parts.push_back({rest.data(), n_bytes});
    rest = rest.subspan(n_bytes);
  }
  const int result =
      io_uring_register_buffers(&ring_, parts.data(), static_cast<unsigned>(parts.size()));
  has_window_ = result == 0;
  return has_window_ ? "" : std::generic_category().message(-result);
}

Opened Ring::open() {
  if (const int code = make_ring()) return {code, {}};
  is_open_ = true;
  if (!knows_operations()) return {ENOSYS, {}};
  std::vector<int> files;
  for (const UniqueFd& file : state_.files)
    files.push_back(file.get());
  has_files_ =
      io_uring_register_files(&ring_, files.data(), static_cast<unsigned>(files.size())) == 0;
  return {0, register_window()};
}

/** The registered part of the window that holds the piece's memory, or -1. */
int Ring::registered_index(const DiskPiece& piece, int64_t n_bytes) const {
  if (!has_window_) return -1;
  const auto begin =
      reinterpret_cast<intptr_t>(piece.memory) - reinterpret_cast<intptr_t>(state_.window.data());
  if (begin < 0 || begin + n_bytes > std::ssize(state_.window)) return -1;
  const int64_t part = begin / kRegistered_bytes;
  return (begin + n_bytes - 1) / kRegistered_bytes == part ? static_cast<int>(part) : -1;
}

void Ring::submit(const DiskPiece& piece) {
  left_[static_cast<size_t>(piece.flight)] = piece;
  const int file = has_files_ ? piece.file : state_.files[static_cast<size_t>(piece.file)].get();
  const int64_t n_bytes = state_.faults.asked(piece);
  const auto n = static_cast<unsigned>(n_bytes);
  const auto offset = static_cast<uint64_t>(piece.offset_bytes);
  const int index = registered_index(piece, n_bytes);
  io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);  // there are as many as flights
  switch (piece.operation) {
    case DiskOperation::read:
      if (index < 0)
        io_uring_prep_read(sqe, file, piece.memory, n, offset);
      else
        io_uring_prep_read_fixed(sqe, file, piece.memory, n, offset, index);
      break;
    case DiskOperation::write:
      if (index < 0)
        io_uring_prep_write(sqe, file, piece.memory, n, offset);
      else
        io_uring_prep_write_fixed(sqe, file, piece.memory, n, offset, index);
      break;
    case DiskOperation::flush:
      io_uring_prep_fsync(sqe, file, IORING_FSYNC_DATASYNC);
      break;
  }
  if (has_files_) io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
  sqe->user_data = static_cast<uint64_t>(piece.flight);
}

void Ring::submit_poll() {
  io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
  io_uring_prep_poll_add(sqe, wake_, POLLIN);
  sqe->user_data = kWakeTag;
  is_polling_ = true;
}

void Ring::complete(const io_uring_cqe& cqe) {
  if (cqe.user_data == kWakeTag) {
    eventfd_t n_wakes = 0;
    eventfd_read(wake_, &n_wakes);
    is_polling_ = false;
    return;
  }
  DiskPiece piece = left_[static_cast<size_t>(cqe.user_data)];
  if (state_.requests.take_result(piece, state_.faults.answered(piece, cqe.res)))
    --n_under_way_;
  else
    submit(piece);
}

void Ring::serve() {
  while (true) {
    while (const std::optional<DiskPiece> piece = state_.requests.next_piece()) {
      submit(*piece);
      ++n_under_way_;
      // One by one: neighbours that come together are merged, and a few large requests keep a drive
      // less busy than many. What is not taken now goes with the wait.
      io_uring_submit(&ring_);
    }
    state_.requests.announce();
    if (n_under_way_ == 0 && state_.requests.is_closed()) return;
    if (!is_polling_) submit_poll();
    const int result = io_uring_submit_and_wait(&ring_, 1);
    if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY)
      return state_.requests.lose(-result);
    unsigned head = 0, n_seen = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring_, head, cqe) {
      complete(*cqe);
      ++n_seen;
    }
    io_uring_cq_advance(&ring_, n_seen);
  }
}

class UringQueue final : public DiskQueue {
 public:
  explicit UringQueue(std::shared_ptr<DiskQueueState> state)
      : state_(std::move(state)),
        wake_(std::make_shared<UniqueFd>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
    if (!*wake_) {
      opened_.code = errno;
      return;
    }
    state_->requests.on_wake([wake = wake_] { eventfd_write(wake->get(), 1); });
    std::promise<Opened> opened;
    std::future<Opened> answer = opened.get_future();
    // The ring is made by the thread that submits to it, as the kernel wants it.
    thread_ = std::thread([state = state_, wake = wake_, opened = std::move(opened)]() mutable {
      Ring ring(*state, wake->get());
      const Opened outcome = ring.open();
      opened.set_value(outcome);
      if (outcome.code == 0) ring.serve();
    });
    opened_ = answer.get();
    if (opened_.code != 0) state_->requests.on_wake({});
  }
  ~UringQueue() override {
    if (opened_.code != 0) {
      if (thread_.joinable()) thread_.join();
    } else if (state_->requests.close()) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }
  int code() const { return opened_.code; }
  std::string why_unregistered() const override { return opened_.why_unregistered; }

 private:
  std::shared_ptr<DiskQueueState> state_;
  std::shared_ptr<UniqueFd> wake_;
  Opened opened_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<DiskQueue> make_uring_queue(std::shared_ptr<DiskQueueState> state, int& code) {
  auto queue = std::make_unique<UringQueue>(std::move(state));
  code = queue->code();
  if (code != 0) return nullptr;
  return queue;
}

}  // namespace ferry
