#pragma once
// Finds for the passes of a list the values that pass between blocks: in regions of their own, or
// in slots, which values leave for host memory where others need them first.

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "offload/step/layout.h"
#include "offload/step/passes.h"
#include "offload/step/slot_pool.h"

namespace ferry {

class ValueSlots {
 public:
  /** All arguments outlive this. */
  ValueSlots(const StepShape& shape,
             const Layout& layout,
             std::span<const BlockPass> passes,
             std::span<const std::vector<PassedValue>> passed,
             int n_micro);

  /** Passes come in order, each once. A pass of another rank writes what comes from there. */
  void begin_pass(size_t t);
  struct At {
    RegionId region = -1;
    bool is_there = true;  ///< false: it has to be fetched from the host, or written
  };
  /** The place of a value of this pass's micro-batch; it stays there until the pass has run. */
  At find(int value);
  /** A later pass reads the value, or it lies in no slot that others wait for. */
  bool is_needed_later(int value) const;
  /** The value has to go to the host once this pass has written it. */
  bool leaves(int value) const;

 private:
  bool is_in_slot(int value) const { return home_of(value) < 0; }
  RegionId home_of(int value) const;
  /** The value of this pass's micro-batch. */
  int item_of(int value) const { return value * n_micro_ + passes_[t_].micro; }
  std::vector<std::vector<int>> reads_of_items();
  void find_those_that_leave();

  const StepShape& shape_;
  const Layout& layout_;
  std::span<const BlockPass> passes_;
  std::span<const std::vector<PassedValue>> passed_;  ///< by pass
  int n_micro_;
  size_t t_ = 0;
  SlotPool slots_;
  std::vector<int> pinned_;   ///< slots of this pass
  std::vector<int> written_;  ///< by item: the pass that wrote it last
  /** Items as passes wrote them that are evicted before they are read again. */
  std::set<std::pair<int, int>> leaving_;
};

}  // namespace ferry
