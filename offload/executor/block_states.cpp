#include "offload/executor/block_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "src/base/error.h"

namespace ferry {
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

}  // namespace ferry
