#include "offload/executor/state_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "simd/kernels.h"
#include "src/base/error.h"

namespace ferry {

StateWindow::StateWindow(const StepShape& shape, const RunMemory& memory, StateStore& store)
    : shape_(shape),
      memory_(memory),
      store_(store),
      slot_(memory.at(memory.layout().state_window)) {
  FERRY_CHECK(slot_, "no room for a piece of states");
}

std::byte* StateWindow::weights_of(int block, const StateRecord& record) const {
  const ByteRange range =
      element_bytes(shape_, block, Segment::weights, record.begin, record.n_elements);
  return memory_.segment(block, Segment::weights) + range.offset;
}

void StateWindow::hold(int block, int piece) {
  if (block == block_ && piece == piece_) return;
  put_back();
  block_ = block;
  piece_ = piece;
  if (store_.has(block, piece)) return store_.read_all(block, piece, slot_);
  std::memset(slot_, 0, static_cast<size_t>(state_record(shape_, block, piece).n_bytes));
}

void StateWindow::put_back() {
  if (block_ < 0 || !std::exchange(is_changed_, false)) return;
  const StateRecord record = state_record(shape_, block_, piece_);
  if (record.weights.n_bytes > 0 && !are_weights_on_drive(block_))
    std::memcpy(slot_ + record.weights.offset, weights_of(block_, record),
                static_cast<size_t>(record.weights.n_bytes));
  store_.write(block_, piece_, slot_);
}

void StateWindow::read(int block, Segment segment, int64_t offset, std::span<std::byte> to) {
  for_record_parts(shape_, block, segment, {offset, std::ssize(to)}, [&](const RecordPart& part) {
    hold(block, part.piece);
    std::memcpy(to.data() + part.done, slot_ + part.offset, static_cast<size_t>(part.n_bytes));
  });
}

void StateWindow::write(int block,
                        Segment segment,
                        int64_t offset,
                        std::span<const std::byte> from) {
  for_record_parts(shape_, block, segment, {offset, std::ssize(from)}, [&](const RecordPart& part) {
    hold(block, part.piece);
    std::memcpy(slot_ + part.offset, from.data() + part.done, static_cast<size_t>(part.n_bytes));
    is_changed_ = true;
  });
}

void StateWindow::finish_writes() {
  put_back();
  for (int b = 0; b < shape_.n_blocks(); ++b)
    for (int piece = 0; piece < n_drive_pieces(shape_, b); ++piece) {
      const bool has_copy = stores_weights(shape_, b) && !are_weights_on_drive(b);
      if (store_.has(b, piece) && !has_copy) continue;
      hold(b, piece);
      is_changed_ = true;
      put_back();
    }
  forget();
}

void StateWindow::restore_weights() {
  forget();
  for (int b = 0; b < shape_.n_blocks(); ++b)
    for (int piece = 0; piece < shape_.n_state_pieces(b) && !are_weights_on_drive(b); ++piece) {
      hold(b, piece);
      const StateRecord record = state_record(shape_, b, piece);
      std::byte* weights = weights_of(b, record);
      if (record.weights.n_bytes > 0)
        std::memcpy(weights, slot_ + record.weights.offset,
                    static_cast<size_t>(record.weights.n_bytes));
      else
        simd::convert(weights, shape_.compute, slot_ + record.master.offset, DType::f32,
                      record.n_elements);
    }
  forget();
}

}  // namespace ferry
