#include "offload/step/values/value_homes.h"

#include <algorithm>

#include "offload/step/passes.h"

namespace ferry {
namespace {

/** The passes between which a value lives: block b's forward is pass b of n, and then come the
 * backwards. */
struct Life {
  int first = -1, last = -1;
  int n_backward_reads = 0;
};

class HomeFinder {
 public:
  explicit HomeFinder(const StepShape& shape)
      : shape_(shape), n_(shape.n_blocks()), lives_(shape.values.size()) {
    for (int b = 0; b < n_; ++b)
      touch({.backward = false, .block = b}, b);
    int pass = n_;
    backward_of_.resize(shape.blocks.size(), 2 * n_);
    for (int b : shape.backward_order()) {
      backward_of_[static_cast<size_t>(b)] = pass;
      touch({.backward = true, .block = b}, pass++);
    }
  }

  ValueHomes find() {
    homes_.of.resize(lives_.size());
    for (size_t v = 0; v < lives_.size(); ++v)
      if (lives_[v].first >= 0) homes_.of[v].kind = kind_of(lives_[v]);
    keep_the_last_in_slots();
    share_regions();
    return std::move(homes_);
  }

 private:
  int backward_of(int b) const { return backward_of_[static_cast<size_t>(b)]; }

  void touch(const BlockPass& its, int pass) {
    for (const Port& port : shape_.blocks[its.block].ports) {
      const PortUse use = port.of(its.backward);
      if (use == PortUse::none) continue;
      Life& life = lives_[static_cast<size_t>(port.value)];
      if (life.first < 0) life.first = pass;
      life.last = pass;
      life.n_backward_reads += its.backward && reads(use);
    }
  }

  ValueHome::Kind kind_of(const Life& life) const {
    if (life.first >= n_ || life.n_backward_reads == 0) return ValueHome::Kind::shared;
    // A slot would be filled for each block that reads it.
    const bool is_for_many = life.n_backward_reads > 1;
    return shape_.layer_inputs_on_host && !is_for_many ? ValueHome::Kind::slot
                                                       : ValueHome::Kind::own;
  }

  /** Values of the last blocks stay in their slots for the backward. There must be room for all
   * outputs of one block and an input before any can stay. */
  void keep_the_last_in_slots() {
    const int n_slots = shape_.n_layer_input_slots, n_live = shape_.n_live();
    int n_staying = n_slots > n_live ? n_slots / n_live : 0;
    std::vector<size_t> in_slots;
    for (size_t v = 0; v < lives_.size(); ++v)
      if (homes_.of[v].kind == ValueHome::Kind::slot) in_slots.push_back(v);
    std::ranges::stable_sort(in_slots, std::greater{}, [&](size_t v) { return lives_[v].first; });
    for (size_t v : in_slots) {
      homes_.of[v].has_host = n_staying-- <= 0;
      homes_.slot_bytes = std::max(homes_.slot_bytes, shape_.values[v].n_bytes);
    }
  }

  /** Room that a shared region gives, in quarters of a pass: what a pass reads is there from before
   * it to its end, what it writes from its middle on. A recomputation comes before. */
  struct Stay {
    int64_t from = 0, to = 0;
    size_t value = 0;
    int* region = nullptr;
    bool is_grad = false;
  };
  void share_regions() {
    std::vector<Stay> stays;
    for (size_t v = 0; v < lives_.size(); ++v)
      if (homes_.of[v].kind == ValueHome::Kind::shared)
        stays.push_back({4 * lives_[v].first + 2, 4 * lives_[v].last + 3, v, &homes_.of[v].shared,
                         lives_[v].first >= n_});
    for (int b = 0; b < n_; ++b)
      for (const Port& port : shape_.blocks[b].ports)
        if (const auto v = static_cast<size_t>(port.value);
            port.forward == PortUse::writes && homes_.of[v].kind == ValueHome::Kind::slot)
          stays.push_back(
              {4 * backward_of(b), 4 * backward_of(b), v, &homes_.of[v].discarded, true});
    std::ranges::stable_sort(stays, {}, &Stay::from);
    std::vector<int64_t> taken_until;  // by region
    for (const Stay& stay : stays) {
      size_t s = 0;
      while (s < taken_until.size() &&
             (taken_until[s] >= stay.from || homes_.shared[s].has_grads != stay.is_grad))
        ++s;
      if (s == taken_until.size()) {
        taken_until.push_back(0);
        homes_.shared.push_back({0, stay.is_grad});
      }
      taken_until[s] = stay.to;
      homes_.shared[s].n_bytes =
          std::max(homes_.shared[s].n_bytes, shape_.values[stay.value].n_bytes);
      *stay.region = static_cast<int>(s);
    }
  }

  const StepShape& shape_;
  int n_;
  std::vector<int> backward_of_;  ///< by block
  std::vector<Life> lives_;       ///< by value
  ValueHomes homes_;
};

}  // namespace

ValueHomes value_homes(const StepShape& shape) {
  return HomeFinder(shape).find();
}

}  // namespace ferry
