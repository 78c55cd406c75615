#pragma once
// Slots of one kind, and what each holds while a list is made: weights, gradients, activations and
// values between blocks all live in one of these.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "offload/step/place.h"
#include "src/base/error.h"

namespace ferry {

class SlotPool {
 public:
  /** `reads`: for each item the passes that read it, ascending; empty where nothing comes again. */
  explicit SlotPool(std::span<const RegionId> slots, std::vector<std::vector<int>> reads = {})
      : slots_(slots.begin(), slots.end()), reads_(std::move(reads)) {}

  /** The slot that holds the item; -1: none does. */
  int find(int item) const {
    const auto i = static_cast<size_t>(item);
    return i < slot_of_.size() ? slot_of_[i] : -1;
  }
  /** The item that the slot held is gone; -1: there was none. */
  struct Taken {
    int slot = -1, evicted = -1;
  };
  /** Puts the item in the slot whose content is needed last after pass `t`; among equals in the one
   * used longest ago, so that a copy runs beside compute. */
  Taken take(int item, int t, std::span<const int> pinned = {}) {
    int best = -1;
    for (int s = 0; s < static_cast<int>(slots_.size()); ++s)
      if (std::ranges::find(pinned, s) == pinned.end() && (best < 0 || rank(s, t) > rank(best, t)))
        best = s;
    FERRY_CHECK(best >= 0, "no slot of {} is free", slots_.size());
    Slot& slot = at(best);
    const Taken taken{best, slot.item};
    if (slot.item >= 0) slot_of_[static_cast<size_t>(slot.item)] = -1;
    if (static_cast<size_t>(item) >= slot_of_.size())
      slot_of_.resize(static_cast<size_t>(item) + 1, -1);
    slot_of_[static_cast<size_t>(item)] = best;
    slot.item = item;
    use(best, t);
    return taken;
  }
  void use(int slot, int t) { at(slot).last_use = t; }
  /** The next pass after `t` that reads the item. */
  int next_read(int item, int t) const {
    const auto i = static_cast<size_t>(item);
    if (i >= reads_.size()) return kNever;
    const auto next = std::ranges::upper_bound(reads_[i], t);
    return next == reads_[i].end() ? kNever : *next;
  }
  RegionId region(int slot) const { return slots_[static_cast<size_t>(slot)].region; }

  static constexpr int kNever = std::numeric_limits<int>::max();

 private:
  struct Slot {
    explicit Slot(RegionId id) : region(id) {}
    RegionId region;
    int item = -1;
    int last_use = -1;  ///< pass
  };
  Slot& at(int slot) { return slots_[static_cast<size_t>(slot)]; }
  std::pair<int, int> rank(int s, int t) const {
    const Slot& slot = slots_[static_cast<size_t>(s)];
    return {slot.item < 0 ? kNever : next_read(slot.item, t), -slot.last_use};
  }

  std::vector<Slot> slots_;
  std::vector<std::vector<int>> reads_;
  std::vector<int> slot_of_;  ///< by item
};

}  // namespace ferry
