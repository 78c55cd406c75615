// Checkpoints leave beside the steps: block after block on the save queue, each before its next
// update.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

#include "offload/executor/executor.h"
#include "src/base/error.h"

namespace ferry {

bool Executor::has_frozen(int b) const {
  return block(b).n_trained_elements < block(b).n_elements;
}

void Executor::save(std::function<void(BlockStates&)> write,
                    std::function<void()> end,
                    std::function<void()> pin) {
  FERRY_CHECK(!is_saving(), "a checkpoint is being written");
  FERRY_CHECK(!pin || store_, "nothing to pin");
  is_saving_ = true;
  n_saved_bytes_ = 0;
  save_write_ = std::move(write);
  save_end_ = std::move(end);
  update_waits_for_save_.assign(update_waits_for_save_.size(), false);
  const bool pins = pin != nullptr;
  if (pins) {
    device_.wait(QueueId::save, committed_);
    device_.submit(QueueId::save, std::move(pin));
    device_.record(pinned_);
  }
  for (int b : save_order_) {
    // Frozen weights beside trained ones on the drive are read from where the next step writes.
    const bool is_pinned = pins && layout_.block(b).n_state_pieces > 0 &&
                           !(layout_.block(b).reads_weights && has_frozen(b));
    if (!is_pinned) {
      device_.wait(QueueId::save, updated_[b]);
      device_.wait(QueueId::save, sent_[b]);
    }
    device_.submit(QueueId::save, [this, b] {
      if (window_) window_->let_go();
      BlockStates states(shape_, device_, pool_, memory_, window_ ? &*window_ : nullptr, b,
                         n_saved_bytes_);
      save_write_(states);
    });
    if (!is_pinned) device_.record(saved_[b]);
  }
  device_.submit(QueueId::save, [this] { save_end_(); });
  device_.record(save_ended_);
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

std::span<std::byte> Executor::save_buffer() const {
  constexpr size_t kPage_bytes = 4096;
  void* at = memory_.at(layout_.save_buffer);
  auto n_bytes = static_cast<size_t>(layout_.region(layout_.save_buffer).n_bytes);
  FERRY_CHECK(std::align(kPage_bytes, kPage_bytes, at, n_bytes), "no page in the buffer");
  return {static_cast<std::byte*>(at), n_bytes};
}

}  // namespace ferry
