#include "src/engine/state/segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "simd/kernels.h"
#include "src/base/error.h"
#include "src/engine/ranks/rank_commands.h"
#include "src/engine/state/stored_rows.h"

namespace ferry {

ByteRange Segments::bytes_of_elements(int block, Segment segment, int64_t begin, int64_t n) const {
  return {ferry::bytes_of_elements(shape_, block, segment, begin),
          ferry::bytes_of_elements(shape_, block, segment, n)};
}

void Segments::write(int block, Segment segment, const ByteRange& range, const void* from) {
  if (!shape_.has_peers()) return write_own(block, segment, range, from);
  for_rank_parts(shape_, block, segment, range, [&](const RankPart& part) {
    const std::byte* const its = static_cast<const std::byte*>(from) + part.done;
    if (part.rank == shape_.ranks.rank)
      write_own(block, segment, {part.offset, part.n_bytes}, its);
    else if (leader_)
      leader_->write(part, block, segment, its);
  });
}

void Segments::read(int block, Segment segment, const ByteRange& range, void* to) const {
  if (!shape_.has_peers()) return read_own(block, segment, range, to);
  for_rank_parts(shape_, block, segment, range, [&](const RankPart& part) {
    std::byte* const its = static_cast<std::byte*>(to) + part.done;
    if (part.rank == shape_.ranks.rank)
      read_own(block, segment, {part.offset, part.n_bytes}, its);
    else if (leader_ && !part.is_copy)
      leader_->read(part, block, segment, its);
  });
}

void Segments::write_own(int block, Segment segment, const ByteRange& range, const void* from) {
  memory_.note_new_weights();
  // Weights of such blocks, too: a generation has what is trained of them.
  has_changed_ = has_changed_ || n_drive_pieces(shape_, block) > 0;
  std::byte* const begin = memory_.segment(block, segment);  // null on a drive
  switch (memory_.place_of(block, segment)) {
    case Place::host:
      std::memcpy(begin + range.offset, from, static_cast<size_t>(range.n_bytes));
      return;
    case Place::device:
      device_.submit(QueueId::h2d, [&] {
        device_.copy(QueueId::h2d, begin + range.offset, from, range.n_bytes);
      });
      return device_.drain();
    case Place::nvme:
      return window_->write(
          block, segment, range.offset,
          {static_cast<const std::byte*>(from), static_cast<size_t>(range.n_bytes)});
  }
}

void Segments::restore_weights() {
  memory_.note_new_weights();
  window_->restore_weights();
}

void Segments::read_own(int block, Segment segment, const ByteRange& range, void* to) const {
  const std::byte* const begin = memory_.segment(block, segment);  // null on a drive
  switch (memory_.place_of(block, segment)) {
    case Place::host:
      std::memcpy(to, begin + range.offset, static_cast<size_t>(range.n_bytes));
      return;
    case Place::device:
      device_.submit(QueueId::d2h,
                     [&] { device_.copy(QueueId::d2h, to, begin + range.offset, range.n_bytes); });
      return device_.drain();
    case Place::nvme:
      return window_->read(block, segment, range.offset,
                           {static_cast<std::byte*>(to), static_cast<size_t>(range.n_bytes)});
  }
}

// Piece by piece: a whole embedding's halves beside its values would be host memory that no plan
// knows of.
constexpr size_t kPiece_elements = 64 * 1024;

void Segments::set_param(int block, int64_t offset, std::span<const float> values) {
  for (size_t begin = 0; begin < values.size(); begin += kPiece_elements)
    set_piece(block, offset + static_cast<int64_t>(begin),
              values.subspan(begin, std::min(kPiece_elements, values.size() - begin)));
}

bool Segments::has_master(int block, int64_t offset) const {
  return shape_.trains &&
         (shape_.weights_are_master() || offset < shape_.blocks[block].n_trained_elements);
}

void Segments::set_piece(int block, int64_t offset, std::span<const float> values) {
  const auto n = static_cast<int64_t>(values.size());
  const auto put = [&](Segment segment, const void* from) {
    write(block, segment, bytes_of_elements(block, segment, offset, n), from);
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
    read(block, segment, bytes_of_elements(block, segment, offset, n), to);
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

void Segments::set_values(int block,
                          const ParamSpec& param,
                          int64_t first_value,
                          std::span<const float> values) {
  if (param.storage.is_compute()) return set_param(block, param.offset + first_value, values);
  const ByteRange begin = bytes_of_elements(block, Segment::weights, param.offset, 0);
  write_rows(
      param.stored(shape_.compute), first_value / param.row_values(), values,
      [&](int64_t offset, std::span<const std::byte> from) {
        set_bytes(block, Segment::weights, begin.offset + offset, from);
      },
      [&](const StoredMatrix& part) -> UnnestedScales& {
        return unnested_[{block, begin.offset + part.begin}];
      });
}

void Segments::set_codes(int block,
                         const ParamSpec& param,
                         const StoredMatrix& part,
                         int64_t row,
                         std::span<const std::byte> codes) {
  const ByteRange begin = bytes_of_elements(block, Segment::weights, param.offset, 0);
  set_bytes(block, Segment::weights, begin.offset + part.begin + row * part.row_bytes, codes);
}

void Segments::set_nested_scales(int block,
                                 const ParamSpec& param,
                                 const StoredMatrix& part,
                                 std::span<const std::byte> codes,
                                 std::span<const float> nested) {
  const ByteRange begin = bytes_of_elements(block, Segment::weights, param.offset, 0);
  set_bytes(block, Segment::weights, begin.offset + part.scales_begin, codes);
  set_bytes(block, Segment::weights, begin.offset + part.nested_begin, std::as_bytes(nested));
}

void Segments::get_values(int block,
                          const ParamSpec& param,
                          int64_t first_value,
                          std::span<float> values) const {
  if (param.storage.is_compute()) return get_param(block, param.offset + first_value, values);
  const ByteRange begin = bytes_of_elements(block, Segment::weights, param.offset, 0);
  read_rows(param.stored(shape_.compute), first_value, values,
            [&](int64_t offset, std::span<std::byte> to) {
              read(block, Segment::weights, {begin.offset + offset, std::ssize(to)}, to.data());
            });
}

void EntryWriter::write(std::span<const float> values) {
  const size_t unit = param_.storage.is_compute() ? 1 : static_cast<size_t>(param_.row_values());
  if (!row_.empty()) {
    const auto rest = values.first(std::min(unit - row_.size(), values.size()));
    row_.insert(row_.end(), rest.begin(), rest.end());
    values = values.subspan(rest.size());
    if (row_.size() < unit) return;
    put(row_);
  }
  const size_t n = values.size() / unit * unit;
  put(values.first(n));
  row_.assign(values.begin() + static_cast<std::ptrdiff_t>(n), values.end());
}

void EntryWriter::put(std::span<const float> values) {
  segments_.set_values(block_, param_, next_value_, values);
  next_value_ += std::ssize(values);
}

void Segments::set_bytes(int block,
                         Segment segment,
                         int64_t offset,
                         std::span<const std::byte> bytes) {
  write(block, segment, {offset, std::ssize(bytes)}, bytes.data());
}

std::vector<std::byte> Segments::bytes_of(int block, Segment segment) const {
  // Where the blocks are split over ranks, others than the leader may have it.
  const bool may_be_of_others = leader_ && shape_.deals_blocks();
  if (memory_.layout().segment(block, segment) < 0 && !may_be_of_others) return {};
  StepShape of = shape_;
  if (leader_) of.ranks = {};
  std::vector<std::byte> bytes(static_cast<size_t>(segment_bytes(of, block, segment)));
  const ByteRange all = {0, std::ssize(bytes)};
  if (bytes.empty()) return bytes;
  if (leader_)
    read(block, segment, all, bytes.data());
  else
    read_own(block, segment, all, bytes.data());
  return bytes;
}

}  // namespace ferry
