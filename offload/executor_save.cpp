// Checkpoints leave beside the steps: block after block on the save queue, each before its next
// update.

#include <fmt/format.h>

#include <cstring>
#include <memory>

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
      BlockStates states(device_, pool_, memory_, b);
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

void BlockStates::read(Segment segment,
                       int64_t offset_bytes,
                       std::span<const std::span<std::byte>> parts,
                       const std::function<void(size_t part)>& look) {
  std::vector<const std::byte*> from;
  from.reserve(parts.size());
  const std::byte* next = memory_.segment(block_, segment) + offset_bytes;
  for (const auto part : parts) {
    from.push_back(next);
    next += part.size();
  }
  const bool is_on_host = memory_.place_of(block_, segment) == Place::host;
  for (size_t i = 0; i < parts.size() && !is_on_host; ++i)
    memory_.read_lasting(device_, parts[i].data(), from[i], static_cast<int64_t>(parts[i].size()));
  pool_.parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t task) {
    const auto i = static_cast<size_t>(task);
    if (is_on_host) std::memcpy(parts[i].data(), from[i], parts[i].size());
    look(i);
  });
}

std::span<std::byte> BlockStates::buffer() const {
  constexpr size_t kPage_bytes = 4096;
  const Layout& layout = memory_.layout();
  void* at = memory_.at(layout.save_buffer);
  auto n_bytes = static_cast<size_t>(layout.region(layout.save_buffer).n_bytes);
  FERRY_CHECK(std::align(kPage_bytes, kPage_bytes, at, n_bytes), "no page in the buffer");
  return {static_cast<std::byte*>(at), n_bytes};
}

}  // namespace ferry
