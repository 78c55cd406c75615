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
      device_.wait(QueueId::save, updated_[static_cast<size_t>(b)]);
      device_.wait(QueueId::save, sent_[static_cast<size_t>(b)]);
    }
    device_.submit(QueueId::save, [this, b] {
      if (window_) window_->forget();
      BlockStates states(shape_, device_, pool_, memory_, window_ ? &*window_ : nullptr, b,
                         n_saved_bytes_);
      save_write_(states);
    });
    if (!is_pinned) device_.record(saved_[static_cast<size_t>(b)]);
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

namespace {

/** The upper halves of fp32 values, and behind them the lower ones, become the values. */
void join_halves(std::span<std::byte> bytes) {
  const size_t n = bytes.size() / sizeof(float);
  std::vector<uint16_t> halves(2 * n);
  std::memcpy(halves.data(), bytes.data(), bytes.size());
  std::vector<float> values(n);
  simd::join_f32(values.data(), halves.data(), halves.data() + n, static_cast<int64_t>(n));
  std::memcpy(bytes.data(), values.data(), bytes.size());
}

}  // namespace

std::vector<HostCopy> BlockStates::parts_of(const StatePiece& piece, Place place) const {
  std::vector<HostCopy> parts;
  const auto add = [&](Segment segment, std::byte* to, int64_t offset, int64_t n_bytes) {
    if (memory_.place_of(block_, segment) == place)
      parts.push_back({to, memory_.segment(block_, segment) + offset, n_bytes});
  };
  const auto n_bytes = static_cast<int64_t>(piece.to.size());
  if (!is_split(piece)) {
    add(piece.segment, piece.to.data(), piece.offset_bytes, n_bytes);
    return parts;
  }
  FERRY_CHECK(piece.offset_bytes % 4 == 0 && n_bytes % 4 == 0, "{} bytes from {} of a split master",
              n_bytes, piece.offset_bytes);
  const int64_t half_offset = piece.offset_bytes / 2, half_bytes = n_bytes / 2;
  add(Segment::weights, piece.to.data(), half_offset, half_bytes);
  add(Segment::master, piece.to.data() + half_bytes, half_offset, half_bytes);
  return parts;
}

void BlockStates::read_from_drive(const StatePiece& piece) {
  if (!is_split(piece)) return window_->read(block_, piece.segment, piece.offset_bytes, piece.to);
  const auto high = piece.to.first(piece.to.size() / 2), low = piece.to.last(piece.to.size() / 2);
  if (const std::byte* weights = memory_.segment(block_, Segment::weights))
    std::memcpy(high.data(), weights + piece.offset_bytes / 2, high.size());
  else
    window_->read(block_, Segment::weights, piece.offset_bytes / 2, high);
  window_->read(block_, piece.segment, piece.offset_bytes / 2, low);
}

void BlockStates::read(std::span<const StatePiece> pieces,
                       const std::function<void(size_t piece)>& look) {
  const auto place_of = [&](const StatePiece& piece) {
    return memory_.place_of(block_, piece.segment);
  };
  std::vector<HostCopy> from_gpu;
  for (const StatePiece& piece : pieces)
    if (place_of(piece) == Place::nvme)
      read_from_drive(piece);
    else
      std::ranges::copy(parts_of(piece, Place::device), std::back_inserter(from_gpu));
  memory_.read_lasting(device_, from_gpu);
  pool_.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    const StatePiece& piece = pieces[static_cast<size_t>(i)];
    if (place_of(piece) != Place::nvme)
      for (const HostCopy& part : parts_of(piece, Place::host))
        std::memcpy(part.to, part.from, static_cast<size_t>(part.n_bytes));
    if (is_split(piece)) join_halves(piece.to);
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
