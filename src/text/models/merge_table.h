#pragma once
// MergeTable finds the merge of two neighbouring tokens: its rank and what they become. One open
// table, built once when a tokenizer is opened, then immutable.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::text {

class MergeTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;  // above every rank

  explicit MergeTable(size_t n_merges) : slots_(std::bit_ceil(2 * n_merges + 2)) {}

  /** Ranks are 0, 1, 2, ..., or that of the last pair if it becomes the same token and may share
   * it; a pair that comes again takes the later one. */
  void add(int32_t left, int32_t right, int32_t merged, bool may_share) {
    const uint64_t key = key_of(left, right);
    size_t i = place(key);
    while (slots_[i].key != kFree && slots_[i].key != key)
      i = (i + 1) & (slots_.size() - 1);
    if (!may_share || merged_.empty() || merged_.back() != merged) merged_.push_back(merged);
    slots_[i] = {key, static_cast<uint32_t>(merged_.size() - 1)};
  }

  /** The rank of a pair's merge, kNone if it has none. */
  uint32_t rank(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t i = place(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return slots_[i].rank;
      if (slots_[i].key == kFree) return kNone;
    }
  }

  /** The token that the pair of a rank becomes. */
  int32_t merged(uint32_t rank) const { return merged_[rank]; }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  struct Slot {
    uint64_t key = kFree;
    uint32_t rank = kNone;
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }
  size_t place(uint64_t key) const {
    key *= 0x9E3779B97F4A7C15;
    return (key ^ key >> 32) & (slots_.size() - 1);
  }

  std::vector<Slot> slots_;      // a power of two, at most half of them taken
  std::vector<int32_t> merged_;  // by rank
};

}  // namespace ferry::text
