// Checkpoints leave beside the steps: block after block on the save queue, each before its next
// update.

#include <fmt/format.h>

#include "offload/executor.h"
#include "src/base/error.h"

namespace ferry {

void Executor::save(std::function<void(BlockStates&)> write, std::function<void()> end) {
  FERRY_CHECK(!is_saving(), "a checkpoint is being written");
  is_saving_ = true;
  save_write_ = std::move(write);
  save_end_ = std::move(end);
  // In the order of the updates that will wait. Blocks on the GPU come first: their updates hold up
  // the compute queue itself.
  std::vector<int> order;
  for (Place place : {Place::gpu, Place::host})
    for (int b = 0; b < shape_.n_blocks(); ++b)
      if (block(b).place == place) order.push_back(b);
  for (int b : order) {
    device_.wait(QueueId::save, updated_[static_cast<size_t>(b)]);
    device_.submit(QueueId::save, [this, b] {
      BlockStates states(shape_, device_, memory_, b);
      save_write_(states);
    });
    device_.record(QueueId::save, saved_[static_cast<size_t>(b)]);
  }
  device_.submit(QueueId::save, [this] { save_end_(); });
  device_.record(QueueId::save, save_ended_);
}

bool Executor::is_saving() {
  is_saving_ = is_saving_ && !device_.happened(save_ended_);
  return is_saving_;
}

void Executor::await_saving() {
  if (is_saving()) await_updates();  // one that hangs is named; after them there is the disk only
  while (!device_.wait_host(save_ended_, std::chrono::seconds(10))) {
  }
  is_saving_ = false;
}

std::span<const std::byte> BlockStates::read(Segment segment,
                                             int64_t offset_bytes,
                                             int64_t n_bytes) {
  FERRY_CHECK(n_bytes <= kSavePiece_bytes, "a piece of {} bytes", n_bytes);
  const std::byte* from = memory_.segment(block_, segment) + offset_bytes;
  const auto n = static_cast<size_t>(n_bytes);
  if (memory_.place_of(block_, segment) == Place::host) return {from, n};
  std::byte* staging = memory_.at(memory_.layout().save_staging);
  memory_.read_lasting(device_, staging, from, n_bytes);
  return {staging, n};
}

std::span<std::byte> BlockStates::buffer() const {
  constexpr uintptr_t kPage_bytes = 4096;
  const auto at = reinterpret_cast<uintptr_t>(memory_.at(memory_.layout().save_buffer));
  return {memory_.at(memory_.layout().save_buffer) + (kPage_bytes - at % kPage_bytes) % kPage_bytes,
          static_cast<size_t>(kSavePiece_bytes)};
}

}  // namespace ferry
