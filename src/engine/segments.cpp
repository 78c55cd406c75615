#include "src/engine/segments.h"

#include <cstring>

#include "simd/kernels.h"

namespace ferry {

void Segments::write(std::byte* to, Place place, const void* from, int64_t n_bytes) {
  if (place == Place::host) {
    std::memcpy(to, from, static_cast<size_t>(n_bytes));
    return;
  }
  device_.submit(QueueId::h2d, [&] { device_.copy(QueueId::h2d, to, from, n_bytes); });
  device_.drain();
}

void Segments::read(void* to, const std::byte* from, Place place, int64_t n_bytes) const {
  if (place == Place::host) {
    std::memcpy(to, from, static_cast<size_t>(n_bytes));
    return;
  }
  device_.submit(QueueId::d2h, [&] { device_.copy(QueueId::d2h, to, from, n_bytes); });
  device_.drain();
}

void Segments::set_param(int block, int64_t offset, std::span<const float> values) {
  const auto n = static_cast<int64_t>(values.size());
  if (shape_.trains)
    write(memory_.segment(block, Segment::master) + offset * 4,
          memory_.place_of(block, Segment::master), values.data(), n * 4);
  if (shape_.trains && shape_.weights_are_master()) return;
  const auto width = static_cast<int64_t>(size_of(shape_.compute));
  std::vector<std::byte> rounded(values.size() * static_cast<size_t>(width));
  simd::convert(rounded.data(), shape_.compute, values.data(), DType::f32, n);
  write(memory_.segment(block, Segment::weights) + offset * width,
        memory_.place_of(block, Segment::weights), rounded.data(), n * width);
}

void Segments::get_param(int block, int64_t offset, std::span<float> values) const {
  const auto n = static_cast<int64_t>(values.size());
  if (shape_.trains) {
    read(values.data(), memory_.segment(block, Segment::master) + offset * 4,
         memory_.place_of(block, Segment::master), n * 4);
    return;
  }
  const auto width = static_cast<int64_t>(size_of(shape_.compute));
  std::vector<std::byte> stored(values.size() * static_cast<size_t>(width));
  read(stored.data(), memory_.segment(block, Segment::weights) + offset * width,
       memory_.place_of(block, Segment::weights), n * width);
  simd::convert(values.data(), DType::f32, stored.data(), shape_.compute, n);
}

void Segments::set_state(int block,
                         Segment segment,
                         int64_t offset,
                         std::span<const float> values) {
  write(memory_.segment(block, segment) + offset * 4, memory_.place_of(block, segment),
        values.data(), static_cast<int64_t>(values.size_bytes()));
}

int64_t Segments::bytes_of_segment(int block, Segment segment) const {
  RegionId id = memory_.layout().segments[static_cast<size_t>(block)][static_cast<size_t>(segment)];
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
