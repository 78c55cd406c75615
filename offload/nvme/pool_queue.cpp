#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "offload/nvme/disk_queue.h"

namespace ferry {
namespace {

/** Enough for the rate of most drives; each is held by one transfer. */
constexpr int kThreads_max = 16;

int64_t call(const DiskQueueState& state, const DiskPiece& piece) {
  const int file = state.files[static_cast<size_t>(piece.file)].get();
  const auto n_bytes = static_cast<size_t>(state.faults.asked(piece));
  int64_t result = 0;
  switch (piece.operation) {
    case DiskOperation::read:
      result = ::pread(file, piece.memory, n_bytes, piece.offset_bytes);
      break;
    case DiskOperation::write:
      result = ::pwrite(file, piece.memory, n_bytes, piece.offset_bytes);
      break;
    case DiskOperation::flush:
      result = ::fdatasync(file);
      break;
  }
  return state.faults.answered(piece, result < 0 ? -errno : result);
}

void serve(DiskQueueState& state) {
  while (std::optional<DiskPiece> piece = state.requests.await_piece()) {
    while (!state.requests.take_result(*piece, call(state, *piece))) {
    }
    state.requests.announce();
  }
}

class PoolQueue final : public DiskQueue {
 public:
  explicit PoolQueue(std::shared_ptr<DiskQueueState> state) : state_(std::move(state)) {
    for (int i = std::min(kThreads_max, state_->requests.n_flights()); i-- > 0;)
      threads_.emplace_back([state = state_] { serve(*state); });
  }
  ~PoolQueue() override {
    const bool is_over = state_->requests.close();
    for (std::thread& thread : threads_)
      if (is_over)
        thread.join();
      else
        thread.detach();
  }

 private:
  std::shared_ptr<DiskQueueState> state_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<DiskQueue> make_pool_queue(std::shared_ptr<DiskQueueState> state) {
  return std::make_unique<PoolQueue>(std::move(state));
}

}  // namespace ferry
