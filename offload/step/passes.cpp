#include "offload/step/passes.h"

namespace ferry {
namespace {

std::vector<int> joined(std::vector<int> first, const std::vector<int>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

}  // namespace

std::vector<int> values_read(const StepShape& shape, const BlockPass& pass) {
  const BlockValues& values = shape.blocks[static_cast<size_t>(pass.block)].values;
  return joined(values.inputs, pass.backward ? values.grad_outputs : values.changed);
}

std::vector<int> values_written(const StepShape& shape, const BlockPass& pass) {
  const BlockValues& values = shape.blocks[static_cast<size_t>(pass.block)].values;
  return pass.backward ? values.grad_inputs : joined(values.outputs, values.changed);
}

std::vector<BlockPass> passes_of(const StepShape& shape, int n_micro, bool trains) {
  std::vector<BlockPass> passes;
  const std::vector<int> backward_order = shape.backward_order();
  auto each_block = [&](bool backward, auto&& each) {
    if (backward)
      for (int b : backward_order)
        each(b);
    else
      for (int b = 0; b < shape.n_blocks(); ++b)
        each(b);
  };
  if (shape.order == AccumulationOrder::vertical) {
    each_block(false, [&](int b) {
      for (int m = 0; m < n_micro; ++m)
        passes.push_back({false, b, m});
    });
    if (trains)
      each_block(true, [&](int b) {
        for (int m = 0; m < n_micro; ++m)
          passes.push_back({true, b, m});
      });
  } else {
    for (int m = 0; m < n_micro; ++m) {
      each_block(false, [&](int b) { passes.push_back({false, b, m}); });
      if (trains) each_block(true, [&](int b) { passes.push_back({true, b, m}); });
    }
  }
  return passes;
}

}  // namespace ferry
