#include "offload/step/boundary_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

class BoundaryPlanner {
 public:
  BoundaryPlanner(const StepShape& shape, std::span<const Turn> turns, int n_micro)
      : turns_(turns),
        n_micro_(n_micro),
        slots_(static_cast<size_t>(shape.n_boundary_slots)),
        outputs_(static_cast<size_t>(shape.n_blocks() * n_micro)),
        out_(turns.size()) {
    FERRY_CHECK(shape.n_boundary_slots >= 2, "{} boundary slots", shape.n_boundary_slots);
    for (int b = 0; b < shape.n_blocks(); ++b)
      in_slots_.push_back(shape.boundary_in_slots(b));
    for (size_t t = 0; t < turns.size(); ++t)
      if (Output* input = input_of(turns[t]))
        (turns[t].backward ? input->backward : input->forward) = static_cast<int>(t);
  }

  std::vector<BoundaryTurn> plan() {
    for (int t = 0; t < static_cast<int>(turns_.size()); ++t) {
      BoundaryTurn& turn = out_[static_cast<size_t>(t)];
      if (Output* input = input_of(turns_[static_cast<size_t>(t)])) read(*input, t, turn);
      if (Output* output = output_of(turns_[static_cast<size_t>(t)])) write(*output, t, turn);
    }
    return std::move(out_);
  }

 private:
  /** Of one block and micro-batch. */
  struct Output {
    int written = kNever;                     ///< turn
    int forward = kNever, backward = kNever;  ///< turns that read it
    int slot = -1;
    int next_read(int t) const { return forward > t ? forward : backward > t ? backward : kNever; }
  };
  struct Slot {
    Output* holds = nullptr;
    int last_use = -1;  ///< turn
  };

  Output* output_at(int block, int micro) {
    if (block < 0 || !in_slots_[static_cast<size_t>(block)]) return nullptr;
    return &outputs_[static_cast<size_t>(block * n_micro_ + micro)];
  }
  Output* input_of(const Turn& turn) { return output_at(turn.block - 1, turn.micro); }
  Output* output_of(const Turn& turn) {
    return turn.backward ? nullptr : output_at(turn.block, turn.micro);
  }

  void read(Output& input, int t, BoundaryTurn& turn) {
    turn.fetches_input = input.slot < 0;
    if (turn.fetches_input) take_slot(input, t, /*pinned=*/-1);
    turn.input_slot = input.slot;
    turn.releases_input = input.next_read(t) == kNever;
    slots_[static_cast<size_t>(input.slot)].last_use = t;
  }

  void write(Output& output, int t, BoundaryTurn& turn) {
    output.written = t;
    take_slot(output, t, turn.input_slot);
    turn.output_slot = output.slot;
    slots_[static_cast<size_t>(output.slot)].last_use = t;
  }

  /** Among equals the one used longest ago, so that a copy runs beside compute. */
  void take_slot(Output& output, int t, int pinned) {
    const auto rank = [&](int s) {
      const Slot& slot = slots_[static_cast<size_t>(s)];
      return std::pair{slot.holds ? slot.holds->next_read(t) : kNever, -slot.last_use};
    };
    int best = -1;
    for (int s = 0; s < static_cast<int>(slots_.size()); ++s)
      if (s != pinned && (best < 0 || rank(s) > rank(best))) best = s;
    Slot& slot = slots_[static_cast<size_t>(best)];
    if (slot.holds) {
      if (slot.holds->next_read(t) != kNever)
        out_[static_cast<size_t>(slot.holds->written)].sends_output = true;
      slot.holds->slot = -1;
    }
    slot.holds = &output;
    output.slot = best;
  }

  std::span<const Turn> turns_;
  int n_micro_;
  std::vector<bool> in_slots_;  ///< by block: its output
  std::vector<Slot> slots_;
  std::vector<Output> outputs_;  ///< [block * n_micro + micro]
  std::vector<BoundaryTurn> out_;
};

}  // namespace

std::vector<BoundaryTurn> plan_boundaries(const StepShape& shape,
                                          std::span<const Turn> turns,
                                          int n_micro) {
  if (!shape.boundaries_on_host) return std::vector<BoundaryTurn>(turns.size());
  return BoundaryPlanner(shape, turns, n_micro).plan();
}

}  // namespace ferry
