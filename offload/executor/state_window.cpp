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

template <class Each>
void StateWindow::for_parts(
    int block, Segment segment, int64_t offset, int64_t n_bytes, Each&& each) {
  const int64_t codes_bytes =
      element_bytes(shape_, block, segment, 0, segment_elements(shape_, block, segment)).n_bytes;
  const int64_t element_width = element_bytes(shape_, block, segment, 0, 1).n_bytes;
  for (int64_t done = 0; done < n_bytes;) {
    const bool is_exponent = offset + done >= codes_bytes;
    const int64_t at = is_exponent ? offset + done - codes_bytes : offset + done;
    const int64_t element = is_exponent ? at * simd::kStateBlock : at / element_width;
    const auto piece = static_cast<int>(element / shape_.state_piece_elements);
    hold(block, piece);
    const StateRecord record = state_record(shape_, block, piece);
    const ByteRange& part = !is_exponent                 ? record.part(segment)
                            : segment == Segment::adam_m ? record.m_exponents
                                                         : record.v_exponents;
    const int64_t begin =
        is_exponent ? record.begin / simd::kStateBlock : record.begin * element_width;
    const int64_t n = std::min(n_bytes - done, begin + part.n_bytes - at);
    FERRY_CHECK(n > 0, "{} bytes at {} of {}'s {}", n_bytes, offset,
                shape_.blocks[static_cast<size_t>(block)].name, name_of(segment));
    each(slot_ + part.offset + at - begin, done, n);
    done += n;
  }
}

void StateWindow::read(int block, Segment segment, int64_t offset, std::span<std::byte> to) {
  for_parts(block, segment, offset, std::ssize(to), [&](std::byte* at, int64_t done, int64_t n) {
    std::memcpy(to.data() + done, at, static_cast<size_t>(n));
  });
}

void StateWindow::write(int block,
                        Segment segment,
                        int64_t offset,
                        std::span<const std::byte> from) {
  for_parts(block, segment, offset, std::ssize(from), [&](std::byte* at, int64_t done, int64_t n) {
    std::memcpy(at, from.data() + done, static_cast<size_t>(n));
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
