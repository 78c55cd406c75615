#include "src/engine/state/segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "simd/kernels.h"
#include "src/base/error.h"

namespace ferry {

void Segments::write(std::byte* to, Place place, const void* from, int64_t n_bytes) {
  memory_.note_new_weights();
  if (place == Place::host) {
    std::memcpy(to, from, static_cast<size_t>(n_bytes));
    return;
  }
  FERRY_CHECK(place == Place::device, "a segment on {}", name_of(place));
  device_.submit(QueueId::h2d, [&] { device_.copy(QueueId::h2d, to, from, n_bytes); });
  device_.drain();
}

void Segments::read(void* to, const std::byte* from, Place place, int64_t n_bytes) const {
  if (place == Place::host) {
    std::memcpy(to, from, static_cast<size_t>(n_bytes));
    return;
  }
  FERRY_CHECK(place == Place::device, "a segment on {}", name_of(place));
  device_.submit(QueueId::d2h, [&] { device_.copy(QueueId::d2h, to, from, n_bytes); });
  device_.drain();
}

// Piece by piece: a whole embedding's halves beside its values would be host memory that no plan
// knows of.
constexpr size_t kPiece_elements = 64 * 1024;

void Segments::set_param(int block, int64_t offset, std::span<const float> values) {
  for (size_t begin = 0; begin < values.size(); begin += kPiece_elements)
    set_piece(block, offset + static_cast<int64_t>(begin),
              values.subspan(begin, std::min(kPiece_elements, values.size() - begin)));
}

bool Segments::lacks_master(int block, int64_t offset) const {
  return shape_.trains && !shape_.weights_are_master() &&
         offset >= shape_.blocks[static_cast<size_t>(block)].n_trained_elements;
}

void Segments::set_piece(int block, int64_t offset, std::span<const float> values) {
  const auto n = static_cast<int64_t>(values.size());
  const auto put = [&](Segment segment, const void* from) {
    const ByteRange range = element_bytes(shape_, block, segment, offset, n);
    write(memory_.segment(block, segment) + range.offset, memory_.place_of(block, segment), from,
          range.n_bytes);
  };
  const bool is_trained = has_master(block, offset);
  if (is_trained && shape_.split_master) {
    std::vector<uint16_t> high(values.size()), low(values.size());
    simd::split_f32(high.data(), low.data(), values.data(), n);
    put(Segment::weights, high.data());
    put(Segment::master, low.data());
    return;
  }
  if (is_trained) put(Segment::master, values.data());
  if (is_trained && shape_.weights_are_master()) return;
  std::vector<std::byte> rounded(values.size() * size_of(shape_.compute));
  simd::convert(rounded.data(), shape_.compute, values.data(), DType::f32, n);
  put(Segment::weights, rounded.data());
}

void Segments::get_param(int block, int64_t offset, std::span<float> values) const {
  for (size_t begin = 0; begin < values.size(); begin += kPiece_elements)
    get_piece(block, offset + static_cast<int64_t>(begin),
              values.subspan(begin, std::min(kPiece_elements, values.size() - begin)));
}

void Segments::get_piece(int block, int64_t offset, std::span<float> values) const {
  const auto n = static_cast<int64_t>(values.size());
  const auto get = [&](Segment segment, void* to) {
    const ByteRange range = element_bytes(shape_, block, segment, offset, n);
    read(to, memory_.segment(block, segment) + range.offset, memory_.place_of(block, segment),
         range.n_bytes);
  };
  const bool is_trained = has_master(block, offset);
  if (is_trained && shape_.split_master) {
    std::vector<uint16_t> high(values.size()), low(values.size());
    get(Segment::weights, high.data());
    get(Segment::master, low.data());
    simd::join_f32(values.data(), high.data(), low.data(), n);
    return;
  }
  if (is_trained) return get(Segment::master, values.data());
  std::vector<std::byte> stored(values.size() * size_of(shape_.compute));
  get(Segment::weights, stored.data());
  simd::convert(values.data(), DType::f32, stored.data(), shape_.compute, n);
}

void Segments::set_bytes(int block,
                         Segment segment,
                         int64_t offset,
                         std::span<const std::byte> bytes) {
  write(memory_.segment(block, segment) + offset, memory_.place_of(block, segment), bytes.data(),
        static_cast<int64_t>(bytes.size()));
}

int64_t Segments::bytes_of_segment(int block, Segment segment) const {
  RegionId id = memory_.layout().segment(block, segment);
  return id < 0 ? 0 : memory_.layout().region(id).n_bytes;
}

std::vector<std::byte> Segments::bytes_of(int block, Segment segment) const {
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_of_segment(block, segment)));
  if (!bytes.empty())
    read(bytes.data(), memory_.segment(block, segment), memory_.place_of(block, segment),
         static_cast<int64_t>(bytes.size()));
  return bytes;
}

}  // namespace ferry
