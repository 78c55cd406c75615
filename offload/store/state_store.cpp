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
    for (int piece = 0; piece < shape.n_state_pieces(b); ++piece)
      each(b, piece, state_record(shape, b, piece));
}

int64_t weights_bytes(const StateRecord& record) {
  return record.n_bytes - record.states_bytes;
}

template <class Byte>
std::span<Byte> part(Byte* slot, int64_t offset, int64_t n_bytes) {
  return {slot + offset, static_cast<size_t>(n_bytes)};
}

}  // namespace

std::vector<StoredSegment> StateStore::segments_of(const StepShape& shape) {
  std::vector<StoredSegment> segments;
  for_pieces(shape, [&](int b, int piece, const StateRecord& record) {
    segments.push_back({b, fmt::format("states.{}", piece), record.states_bytes});
    if (weights_bytes(record) > 0)
      segments.push_back({b, fmt::format("weights.{}", piece), weights_bytes(record)});
  });
  return segments;
}

StateStore::StateStore(const StepShape& shape, ExtentStore& extents)
    : extents_(extents), pieces_(shape.blocks.size()) {
  const std::vector<StoredSegment> segments = segments_of(shape);
  FERRY_CHECK(std::ssize(segments) == extents.layout().n_segments(), "{} segments in a store of {}",
              segments.size(), extents.layout().n_segments());
  for (SegmentId id = 0; id < extents.layout().n_segments(); ++id) {
    const StoredSegment &wanted = segments[static_cast<size_t>(id)],
                        &stored = extents.layout().segment(id);
    FERRY_CHECK(wanted.block == stored.block && wanted.name == stored.name &&
                    wanted.n_bytes == stored.n_bytes,
                "segment {} is block {}'s {}, expected block {}'s {}", id, stored.block,
                stored.name, wanted.block, wanted.name);
  }
  SegmentId next = 0;
  for_pieces(shape, [&](int b, int, const StateRecord& record) {
    Piece piece = {.record = record};
    piece.states = next++;
    if (weights_bytes(record) > 0) piece.weights = next++;
    pieces_[static_cast<size_t>(b)].push_back(piece);
  });
}

bool StateStore::has(int block, int piece) const {
  const Piece& its = piece_of(block, piece);
  return extents_.is_written(its.states) && (its.weights < 0 || extents_.is_written(its.weights));
}

void StateStore::read(int block, int piece, std::byte* slot) const {
  const Piece& its = piece_of(block, piece);
  extents_.read_segment(extents_.newest(), its.states, part(slot, 0, its.record.states_bytes));
}

void StateStore::read_all(int block, int piece, std::byte* slot) const {
  read(block, piece, slot);
  const Piece& its = piece_of(block, piece);
  if (its.weights >= 0)
    extents_.read_segment(extents_.newest(), its.weights,
                          part(slot, its.record.states_bytes, weights_bytes(its.record)));
}

void StateStore::write(int block, int piece, const std::byte* slot) {
  const Piece& its = piece_of(block, piece);
  extents_.write_segment(its.states, part(slot, 0, its.record.states_bytes));
  if (its.weights >= 0)
    extents_.write_segment(its.weights,
                           part(slot, its.record.states_bytes, weights_bytes(its.record)));
}

}  // namespace ferry
