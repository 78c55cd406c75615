#include "offload/store/generation_reader.h"

#include <cstring>

#include "simd/kernels.h"
#include "src/base/error.h"

namespace ferry {

GenerationReader::GenerationReader(const StepShape& shape,
                                   const StateStore& states,
                                   const Generation& from)
    : shape_(shape),
      states_(states),
      from_(from),
      slot_(static_cast<size_t>(state_slot_bytes(shape) / kStorePage_bytes)) {}

void GenerationReader::read_stored(int block,
                                   Segment segment,
                                   int64_t offset,
                                   std::span<std::byte> to) {
  std::byte* slot = bytes_of(slot_).data();
  for_record_parts(shape_, block, segment, {offset, std::ssize(to)}, [&](const RecordPart& part) {
    if (block != block_ || part.piece != piece_) {
      block_ = -1;  // where the read fails
      states_.read_all(from_, block, part.piece, slot);
      block_ = block;
      piece_ = part.piece;
    }
    std::memcpy(to.data() + part.done, slot + part.offset, static_cast<size_t>(part.n_bytes));
  });
}

void GenerationReader::read(int block, Segment segment, int64_t offset, std::span<std::byte> to) {
  if (segment != Segment::master) return read_stored(block, segment, offset, to);
  if (shape_.weights_are_master()) return read_stored(block, Segment::weights, offset, to);
  if (!shape_.split_master) return read_stored(block, segment, offset, to);
  const auto n = std::ssize(to) / static_cast<int64_t>(sizeof(float));
  std::vector<uint16_t> high(static_cast<size_t>(n)), low(high.size());
  read_stored(block, Segment::weights, offset / 2, std::as_writable_bytes(std::span(high)));
  read_stored(block, segment, offset / 2, std::as_writable_bytes(std::span(low)));
  std::vector<float> values(high.size());
  simd::join_f32(values.data(), high.data(), low.data(), n);
  std::memcpy(to.data(), values.data(), to.size());
}

}  // namespace ferry
