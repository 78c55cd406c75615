#pragma once
// The contents of regions while a list runs.

#include <map>
#include <vector>

#include "offload/step/action.h"

namespace ferry::test {

enum class What : uint8_t {
  nothing,
  weights,
  states,
  batch,
  value,
  saved,
  saved_recomputed,
  grads,
  sum,
  loss,
  square_sum,
};

/** Part of a thing, which is a block's or a value's, of a micro-batch and a step (of states and
 * weights: the version), after so many additions. */
struct Content {
  What what = What::nothing;
  int block = -1;
  int micro = -1;
  int step = -1;
  int added = 0;
  int64_t from = 0;  ///< the thing's byte that the first of these is
  bool operator==(const Content&) const = default;
};

class Contents {
 public:
  void write(const Bytes& bytes, const Content& content) {
    if (bytes.n_bytes == 0) return;
    cut(bytes);
    auto& pieces = regions_[bytes.region];
    pieces.erase(pieces.lower_bound(bytes.offset),
                 pieces.lower_bound(bytes.offset + bytes.n_bytes));
    pieces[bytes.offset] = {bytes.n_bytes, content};
  }
  void copy(const Bytes& to, const Bytes& from) {
    std::vector<std::pair<Bytes, Content>> copied;
    for (const auto& [offset, piece] : pieces_of(from))
      copied.push_back(
          {{to.region, to.offset + offset - from.offset, piece.n_bytes}, piece.content});
    write(to, {});
    for (const auto& [bytes, content] : copied)
      write(bytes, content);
  }
  bool holds(const Bytes& bytes, const Content& content) {
    int64_t n_held = 0;
    for (const auto& [offset, piece] : pieces_of(bytes)) {
      Content expected = content;
      expected.from += offset - bytes.offset;
      if (piece.content != expected) return false;
      n_held += piece.n_bytes;
    }
    return n_held == bytes.n_bytes;
  }

 private:
  struct Piece {
    int64_t n_bytes = 0;
    Content content;
  };
  using Pieces = std::map<int64_t, Piece>;  // by offset
  /** So that pieces begin where the bytes do and where they end. */
  void cut(const Bytes& bytes) {
    Pieces& pieces = regions_[bytes.region];
    for (const int64_t at : {bytes.offset, bytes.offset + bytes.n_bytes}) {
      auto next = pieces.lower_bound(at);
      if (next == pieces.begin()) continue;
      auto& [begin, piece] = *std::prev(next);
      if (begin + piece.n_bytes <= at) continue;
      Piece rest{begin + piece.n_bytes - at, piece.content};
      rest.content.from += at - begin;
      piece.n_bytes = at - begin;
      pieces[at] = rest;
    }
  }
  Pieces pieces_of(const Bytes& bytes) {
    cut(bytes);
    const Pieces& pieces = regions_[bytes.region];
    return {pieces.lower_bound(bytes.offset), pieces.lower_bound(bytes.offset + bytes.n_bytes)};
  }

  std::map<RegionId, Pieces> regions_;
};

}  // namespace ferry::test
