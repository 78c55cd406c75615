#include "offload/step/values/value_slots.h"

namespace ferry {

ValueSlots::ValueSlots(const StepShape& shape,
                       const Layout& layout,
                       std::span<const BlockPass> passes,
                       std::span<const std::vector<PassedValue>> passed,
                       int n_micro)
    : shape_(shape),
      layout_(layout),
      passes_(passes),
      passed_(passed),
      n_micro_(n_micro),
      slots_(layout.value_slots, reads_of_items()) {
  if (!layout.value_slots.empty()) find_those_that_leave();
}

RegionId ValueSlots::home_of(int value) const {
  const int lane = passes_[t_].micro % shape_.n_live();
  return layout_.values[value * shape_.n_live() + lane];
}

std::vector<std::vector<int>> ValueSlots::reads_of_items() {
  std::vector<std::vector<int>> reads;
  if (layout_.value_slots.empty()) return reads;
  reads.resize(shape_.values.size() * static_cast<size_t>(n_micro_));
  for (t_ = 0; t_ < passes_.size(); ++t_) {
    if (!passes_[t_].runs) continue;
    for (const auto& [port, value] : ports_read(shape_, passes_[t_]))
      if (is_in_slot(value))
        reads[static_cast<size_t>(item_of(value))].push_back(static_cast<int>(t_));
  }
  return reads;
}

/** Goes through all passes once before the list does. */
void ValueSlots::find_those_that_leave() {
  const SlotPool empty = slots_;
  written_.assign(shape_.values.size() * static_cast<size_t>(n_micro_), -1);
  const auto write = [&](int value) {
    find(value);
    written_[static_cast<size_t>(item_of(value))] = static_cast<int>(t_);
  };
  for (size_t t = 0; t < passes_.size(); ++t) {
    begin_pass(t);
    for (const PassedValue& passed : passed_[t])
      if (passed.to == shape_.ranks.rank) write(passed.value);
    if (!passes_[t].runs) continue;
    for (const auto& [port, value] : ports_read(shape_, passes_[t]))
      find(value);
    for (const auto& [port, value] : ports_written(shape_, passes_[t]))
      write(value);
  }
  slots_ = empty;
}

void ValueSlots::begin_pass(size_t t) {
  t_ = t;
  pinned_.clear();
  if (layout_.value_slots.empty() || !passes_[t].runs) return;
  for (const auto& [port, value] : ports_read(shape_, passes_[t]))
    if (const int slot = slots_.find(item_of(value)); slot >= 0) pinned_.push_back(slot);
}

ValueSlots::At ValueSlots::find(int value) {
  if (const RegionId home = home_of(value); home >= 0) return {.region = home};
  const int item = item_of(value), t = static_cast<int>(t_);
  int slot = slots_.find(item);
  const bool is_there = slot >= 0;
  if (is_there) {
    slots_.use(slot, t);
  } else {
    const auto taken = slots_.take(item, t, pinned_);
    slot = taken.slot;
    if (taken.evicted >= 0 && slots_.next_read(taken.evicted, t) != SlotPool::kNever)
      leaving_.insert({taken.evicted, written_[static_cast<size_t>(taken.evicted)]});
  }
  pinned_.push_back(slot);
  return {.region = slots_.region(slot), .is_there = is_there};
}

bool ValueSlots::is_needed_later(int value) const {
  return !is_in_slot(value) ||
         slots_.next_read(item_of(value), static_cast<int>(t_)) != SlotPool::kNever;
}

bool ValueSlots::leaves(int value) const {
  return is_in_slot(value) && leaving_.contains({item_of(value), static_cast<int>(t_)});
}

}  // namespace ferry
