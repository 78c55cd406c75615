#include "offload/step/layer_input_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

class LayerInputPlanner {
 public:
  LayerInputPlanner(const StepShape& shape, std::span<const BlockPass> passes, int n_micro)
      : passes_(passes),
        n_micro_(n_micro),
        slots_(static_cast<size_t>(shape.n_layer_input_slots)),
        outputs_(static_cast<size_t>(shape.n_blocks() * n_micro)),
        out_(passes.size()) {
    FERRY_CHECK(shape.n_layer_input_slots >= 2, "{} layer-input slots", shape.n_layer_input_slots);
    for (int b = 0; b < shape.n_blocks(); ++b)
      in_slots_.push_back(shape.layer_input_in_slots(b));
    for (size_t t = 0; t < passes.size(); ++t)
      if (Output* input = input_of(passes[t]))
        (passes[t].backward ? input->backward : input->forward) = static_cast<int>(t);
  }

  std::vector<LayerInputPass> plan() {
    for (int t = 0; t < static_cast<int>(passes_.size()); ++t) {
      LayerInputPass& pass = out_[static_cast<size_t>(t)];
      if (Output* input = input_of(passes_[static_cast<size_t>(t)])) read(*input, t, pass);
      if (Output* output = output_of(passes_[static_cast<size_t>(t)])) write(*output, t, pass);
    }
    return std::move(out_);
  }

 private:
  /** The output of one block and micro-batch. */
  struct Output {
    int written = kNever;                     ///< pass
    int forward = kNever, backward = kNever;  ///< passes that read it
    int slot = -1;
    int next_read(int t) const { return forward > t ? forward : backward > t ? backward : kNever; }
  };
  struct Slot {
    Output* holds = nullptr;
    int last_use = -1;  ///< pass
  };

  Output* output_at(int block, int micro) {
    if (block < 0 || !in_slots_[static_cast<size_t>(block)]) return nullptr;
    return &outputs_[static_cast<size_t>(block * n_micro_ + micro)];
  }
  Output* input_of(const BlockPass& pass) { return output_at(pass.block - 1, pass.micro); }
  Output* output_of(const BlockPass& pass) {
    return pass.backward ? nullptr : output_at(pass.block, pass.micro);
  }

  void read(Output& input, int t, LayerInputPass& pass) {
    pass.fetches_input = input.slot < 0;
    if (pass.fetches_input) take_slot(input, t, /*pinned=*/-1);
    pass.input_slot = input.slot;
    pass.releases_input = input.next_read(t) == kNever;
    slots_[static_cast<size_t>(input.slot)].last_use = t;
  }

  void write(Output& output, int t, LayerInputPass& pass) {
    output.written = t;
    take_slot(output, t, pass.input_slot);
    pass.output_slot = output.slot;
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

  std::span<const BlockPass> passes_;
  int n_micro_;
  std::vector<bool> in_slots_;  ///< by block: its output
  std::vector<Slot> slots_;
  std::vector<Output> outputs_;  ///< [block * n_micro + micro]
  std::vector<LayerInputPass> out_;
};

}  // namespace

std::vector<LayerInputPass> plan_layer_inputs(const StepShape& shape,
                                              std::span<const BlockPass> passes,
                                              int n_micro) {
  if (!shape.layer_inputs_on_host) return std::vector<LayerInputPass>(passes.size());
  return LayerInputPlanner(shape, passes, n_micro).plan();
}

}  // namespace ferry
