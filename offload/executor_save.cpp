// Checkpoints leave beside the steps: block after block on the save queue, each before its next
// update.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "offload/executor.h"
#include "src/base/error.h"

namespace ferry {

void Executor::save(std::function<void(BlockStates&)> write, std::function<void()> end) {
  FERRY_CHECK(!is_saving(), "a checkpoint is being written");
  is_saving_ = true;
  n_saved_bytes_ = 0;
  save_write_ = std::move(write);
  save_end_ = std::move(end);
  update_waits_for_save_.assign(update_waits_for_save_.size(), false);
  for (int b : save_order_) {
    device_.wait(QueueId::save, updated_[static_cast<size_t>(b)]);
    device_.submit(QueueId::save, [this, b] {
      BlockStates states(device_, pool_, memory_, b, n_saved_bytes_);
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
  device_.await_host(save_ended_);
  is_saving_ = false;
}

void BlockStates::read(std::span<const StatePiece> pieces,
                       const std::function<void(size_t piece)>& look) {
  const auto from = [&](const StatePiece& piece) {
    return memory_.segment(block_, piece.segment) + piece.offset_bytes;
  };
  const auto is_on_host = [&](const StatePiece& piece) {
    return memory_.place_of(block_, piece.segment) == Place::host;
  };
  std::vector<HostCopy> copies;
  for (const StatePiece& piece : pieces)
    if (!is_on_host(piece))
      copies.push_back({piece.to.data(), from(piece), static_cast<int64_t>(piece.to.size())});
  memory_.read_lasting(device_, copies);
  pool_.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    const StatePiece& piece = pieces[static_cast<size_t>(i)];
    if (is_on_host(piece)) std::memcpy(piece.to.data(), from(piece), piece.to.size());
    look(static_cast<size_t>(i));
    n_read_bytes_ += static_cast<int64_t>(piece.to.size());
  });
}

std::span<std::byte> Executor::save_buffer() const {
  constexpr size_t kPage_bytes = 4096;
  void* at = memory_.at(layout_.save_buffer);
  auto n_bytes = static_cast<size_t>(layout_.region(layout_.save_buffer).n_bytes);
  FERRY_CHECK(std::align(kPage_bytes, kPage_bytes, at, n_bytes), "no page in the buffer");
  return {static_cast<std::byte*>(at), n_bytes};
}

}  // namespace ferry
