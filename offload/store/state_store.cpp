#include "offload/store/state_store.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry {
namespace {

/** Calls `each` with block, piece and record of all pieces on a drive, in the order in which the
 * store has them. */
template <class Each>
void for_pieces(const StepShape& shape, Each&& each) {
  for (int b = 0; b < shape.n_blocks(); ++b)
    for (int piece = 0; piece < n_drive_pieces(shape, b); ++piece)
      each(b, piece, state_record(shape, b, piece));
}

int64_t weights_bytes(const StateRecord& record) {
  return record.n_bytes - record.states_bytes;
}

/** The store's first segments are these, and no generation has those that follow. */
bool begins_with(const StoreLayout& layout, const std::vector<StoredSegment>& segments) {
  if (std::ssize(segments) > layout.n_segments()) return false;
  for (SegmentId id = 0; id < layout.n_segments(); ++id) {
    const StoredSegment& stored = layout.segment(id);
    if (id >= std::ssize(segments)) {
      if (!stored.is_volatile) return false;
      continue;
    }
    const StoredSegment& wanted = segments[id];
    if (wanted.block != stored.block || wanted.name != stored.name ||
        wanted.n_bytes != stored.n_bytes || wanted.is_volatile != stored.is_volatile)
      return false;
  }
  return true;
}

}  // namespace

std::vector<StoredSegment> StateStore::segments_of(const StepShape& shape) {
  std::vector<StoredSegment> segments;
  for_pieces(shape, [&](int b, int piece, const StateRecord& record) {
    if (record.states_bytes > 0)
      segments.push_back({b, fmt::format("states.{}", piece), record.states_bytes});
    if (weights_bytes(record) > 0)
      segments.push_back({b, fmt::format("weights.{}", piece), weights_bytes(record)});
  });
  for_pieces(shape, [&](int b, int piece, const StateRecord& record) {
    if (record.grads.n_bytes > 0)
      segments.push_back({.block = b,
                          .name = fmt::format("grads.{}", piece),
                          .n_bytes = record.grads_bytes(),
                          .is_volatile = true});
  });
  return segments;
}

bool StateStore::is_store_of(const StepShape& shape, const StoreLayout& layout) {
  const std::vector<StoredSegment> segments = segments_of(shape);
  return std::ssize(segments) == layout.n_segments() && begins_with(layout, segments);
}

bool StateStore::has_states_of(const StepShape& shape, const StoreLayout& layout) {
  return begins_with(layout, segments_of(shape));
}

StateStore::StateStore(const StepShape& shape, ExtentStore& extents)
    : shape_(shape), extents_(extents), pieces_(shape.blocks.size()) {
  FERRY_CHECK(has_states_of(shape, extents.layout()), "'{}' holds other segments than the states'",
              extents.name());
  SegmentId next = 0;
  for_pieces(shape, [&](int b, int, const StateRecord& record) {
    Piece piece = {.record = record};
    if (record.states_bytes > 0) piece.states = next++;
    if (weights_bytes(record) > 0) piece.weights = next++;
    pieces_[static_cast<size_t>(b)].push_back(piece);
  });
  for (std::vector<Piece>& pieces : pieces_)
    for (Piece& piece : pieces)
      if (piece.record.grads.n_bytes > 0) piece.grads = next++;
}

bool StateStore::has(int block, int piece) const {
  const Piece& its = piece_of(block, piece);
  return (its.states < 0 || extents_.is_written(its.states)) &&
         (its.weights < 0 || extents_.is_written(its.weights));
}

void StateStore::read_part(const Generation& from,
                           SegmentId segment,
                           std::byte* to,
                           int64_t n_bytes) const {
  if (segment >= 0) extents_.read_segment(from, segment, {to, static_cast<size_t>(n_bytes)});
}

void StateStore::read(int block, int piece, std::byte* slot) const {
  const Piece& its = piece_of(block, piece);
  read_part(extents_.newest(), its.states, slot, its.record.states_bytes);
  if (its.record.update_bytes > its.record.states_bytes)
    read_part(extents_.newest(), its.weights, slot + its.record.states_bytes,
              weights_bytes(its.record));
}

void StateStore::read_weights(int block, std::byte* to) const {
  for (const Piece& piece : pieces_[static_cast<size_t>(block)])
    read_part(extents_.newest(), piece.weights,
              to + element_bytes(shape_, block, Segment::weights, piece.record.begin, 0).offset,
              weights_bytes(piece.record));
}

void StateStore::read_all(const Generation& from, int block, int piece, std::byte* slot) const {
  const Piece& its = piece_of(block, piece);
  read_part(from, its.states, slot, its.record.states_bytes);
  read_part(from, its.weights, slot + its.record.states_bytes, weights_bytes(its.record));
}

void StateStore::write_grads(int block, int piece, const std::byte* from) {
  const Piece& its = piece_of(block, piece);
  extents_.write_segment(its.grads, {from, static_cast<size_t>(its.record.grads_bytes())});
}

void StateStore::read_grads(int block, int piece, std::byte* to) const {
  const Piece& its = piece_of(block, piece);
  read_part(extents_.newest(), its.grads, to, its.record.grads_bytes());
}

void StateStore::write(int block, int piece, const std::byte* slot) {
  const Piece& its = piece_of(block, piece);
  const auto write_part = [&](SegmentId segment, int64_t offset, int64_t n_bytes) {
    if (segment >= 0)
      extents_.write_segment(segment, {slot + offset, static_cast<size_t>(n_bytes)});
  };
  write_part(its.states, 0, its.record.states_bytes);
  write_part(its.weights, its.record.states_bytes, weights_bytes(its.record));
}

}  // namespace ferry
