#include "offload/step/state_pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
const ByteRange& StateRecord::part(Segment segment) const {
  if (is_state(segment)) return states[state_index(segment)];
  switch (segment) {
    case Segment::grads:
      return grads;
    case Segment::master:
      if (master.n_bytes > 0) return master;
      [[fallthrough]];
    default:
      return weights;
  }
}

StateRecord state_record(const StepShape& shape, int block, int piece) {
  const BlockShape& its = shape.blocks[block];
  const ElementRange own = shape.own_part(block);
  StateRecord record;
  record.begin = own.begin + piece * shape.state_piece_elements;
  const auto up_to = [&](int64_t end) {
    return std::clamp<int64_t>(end - record.begin, 0, shape.state_piece_elements);
  };
  if (shape.n_state_pieces(block) > 0) record.n_elements = up_to(own.end());
  const auto add = [&](int64_t n_bytes) {
    const ByteRange part = {record.n_bytes, n_bytes};
    record.n_bytes += round_up(n_bytes, kDrivePage_bytes);
    return part;
  };
  const auto elements_of = [&](Segment segment, int64_t n_elements) {
    return add(bytes_of_elements(shape, block, segment, n_elements));
  };
  if (record.n_elements > 0) {
    if (!shape.weights_are_master())
      record.master = elements_of(Segment::master, record.n_elements);
    for (const Segment s : state_segments(shape.optim)) {
      record.states[state_index(s)] = elements_of(s, record.n_elements);
      const bool has_exponents = simd::spec_of(shape.optim).type == simd::StateType::block8;
      record.exponents[state_index(s)] =
          add(has_exponents ? simd::state_blocks(record.n_elements) : 0);
    }
  }
  record.states_bytes = record.update_bytes = record.n_bytes;
  if (stores_weights(shape, block)) {
    const bool are_on_drive = its.place.weights == Place::nvme;
    const int64_t n_weights = are_on_drive ? up_to(its.n_elements) : record.n_elements;
    record.weights = elements_of(Segment::weights, n_weights);
    // The update works in the slot, where frozen weights have to stay what they were.
    const bool has_more = n_weights > record.n_elements;
    const bool is_read =
        are_on_drive && (shape.weights_are_master() || shape.split_master || has_more);
    if (is_read || record.states_bytes == 0)  // a record of which nothing is read is none
      record.update_bytes = record.n_bytes;
  }
  if (shape.grads_on_drive(block))
    record.grads = {record.n_bytes,
                    bytes_of_elements(shape, block, Segment::grads, record.n_elements)};
  return record;
}

void for_record_parts(const StepShape& shape,
                      int block,
                      Segment segment,
                      ByteRange range,
                      const std::function<void(const RecordPart&)>& each) {
  const int64_t codes_bytes =
      bytes_of_elements(shape, block, segment, segment_elements(shape, block, segment));
  const int64_t element_width = bytes_of_elements(shape, block, segment, 1);
  for (int64_t done = 0; done < range.n_bytes;) {
    const bool is_exponent = range.offset + done >= codes_bytes;
    const int64_t at = is_exponent ? range.offset + done - codes_bytes : range.offset + done;
    const int64_t element = is_exponent ? at * simd::kStateBlock : at / element_width;
    const auto piece = static_cast<int>(element / shape.state_piece_elements);
    const StateRecord record = state_record(shape, block, piece);
    const ByteRange& part =
        is_exponent ? record.exponents[state_index(segment)] : record.part(segment);
    const int64_t first = record.begin - shape.own_part(block).begin;
    const int64_t begin = is_exponent ? first / simd::kStateBlock : first * element_width;
    const int64_t n = std::min(range.n_bytes - done, begin + part.n_bytes - at);
    FERRY_CHECK(n > 0, "{} bytes at {} of {}'s {}", range.n_bytes, range.offset,
                shape.blocks[block].name, name_of(segment, shape.optim));
    each({.piece = piece, .offset = part.offset + at - begin, .done = done, .n_bytes = n});
    done += n;
  }
}

namespace {

/** The most bytes of the records of pieces on a drive. */
template <class BytesOf>
int64_t most_bytes(const StepShape& shape, BytesOf&& bytes_of) {
  int64_t most = 0;
  for (int b = 0; b < shape.n_blocks(); ++b)  // a block's first piece is its largest
    if (n_drive_pieces(shape, b) > 0) most = std::max(most, bytes_of(state_record(shape, b, 0)));
  return most;
}

}  // namespace

int64_t state_record_bytes(const StepShape& shape) {
  return most_bytes(shape, [](const StateRecord& record) { return record.n_bytes; });
}

int64_t state_slot_bytes(const StepShape& shape) {
  return most_bytes(
      shape, [](const StateRecord& record) { return record.n_bytes + record.grads_bytes(); });
}

int64_t grad_piece_bytes(const StepShape& shape) {
  return most_bytes(shape, [](const StateRecord& record) { return record.grads_bytes(); });
}

int64_t drive_grads_bytes(const StepShape& shape, int block) {
  if (!shape.grads_on_drive(block)) return 0;
  const StateRecord last = state_record(shape, block, shape.n_state_pieces(block) - 1);
  return element_bytes(shape, block, Segment::grads, last.begin, 0).offset + last.grads_bytes();
}

int n_drive_pieces(const StepShape& shape, int block) {
  return std::max(shape.n_state_pieces(block), shape.n_weight_pieces(block));
}

bool stores_weights(const StepShape& shape, int block) {
  return shape.n_weight_pieces(block) > 0 ||
         (shape.n_state_pieces(block) > 0 && (shape.weights_are_master() || shape.split_master));
}

int64_t drive_weights_bytes(const StepShape& shape, int block) {
  const int last = shape.n_weight_pieces(block) - 1;
  if (last < 0) return 0;
  const StateRecord record = state_record(shape, block, last);
  return element_bytes(shape, block, Segment::weights, record.begin, 0).offset +
         round_up(record.weights.n_bytes, kDrivePage_bytes);
}

}  // namespace ferry
