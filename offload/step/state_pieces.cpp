#include "offload/step/state_pieces.h"

#include <algorithm>

#include "src/base/bytes.h"

namespace ferry {
namespace {

constexpr int64_t kDrivePage_bytes = 4096;

}  // namespace

StateRecord state_record(const StepShape& shape, int block, int piece) {
  StateRecord record;
  record.begin = piece * shape.state_piece_elements;
  record.n_elements =
      std::min(shape.state_piece_elements,
               shape.blocks[static_cast<size_t>(block)].n_trained_elements - record.begin);
  const auto add = [&](int64_t n_bytes) {
    const ByteRange part = {record.n_bytes, n_bytes};
    record.n_bytes += round_up(n_bytes, kDrivePage_bytes);
    return part;
  };
  const auto elements_of = [&](Segment segment) {
    return add(element_bytes(shape, block, segment, 0, record.n_elements).n_bytes);
  };
  if (!shape.weights_are_master()) record.master = elements_of(Segment::master);
  const int64_t n_exponents =
      shape.states == simd::StateType::block8 ? simd::state_blocks(record.n_elements) : 0;
  record.adam_m = elements_of(Segment::adam_m);
  record.m_exponents = add(n_exponents);
  record.adam_v = elements_of(Segment::adam_v);
  record.v_exponents = add(n_exponents);
  record.states_bytes = record.n_bytes;
  if (stores_weights(shape, block)) record.weights = elements_of(Segment::weights);
  return record;
}

int64_t state_slot_bytes(const StepShape& shape) {
  int64_t most = 0;
  for (int b = 0; b < shape.n_blocks(); ++b)  // a block's first piece is its largest
    if (shape.n_state_pieces(b) > 0) most = std::max(most, state_record(shape, b, 0).n_bytes);
  return most;
}

bool stores_weights(const StepShape& shape, int block) {
  return shape.n_state_pieces(block) > 0 && (shape.weights_are_master() || shape.split_master);
}

}  // namespace ferry
