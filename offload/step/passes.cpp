#include "offload/step/passes.h"

namespace ferry {
namespace {

template <class IsUsed>
std::vector<UsedPort> ports_of(const StepShape& shape, const BlockPass& pass, IsUsed is_used) {
  const std::vector<Port>& ports = shape.blocks[pass.block].ports;
  std::vector<UsedPort> used;
  for (size_t p = 0; p < ports.size(); ++p)
    if (is_used(ports[p].of(pass.backward))) used.push_back({static_cast<int>(p), ports[p].value});
  return used;
}

}  // namespace

std::vector<UsedPort> ports_read(const StepShape& shape, const BlockPass& pass) {
  return ports_of(shape, pass, [](PortUse use) { return reads(use); });
}

std::vector<UsedPort> ports_written(const StepShape& shape, const BlockPass& pass) {
  return ports_of(shape, pass, [](PortUse use) { return writes(use); });
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
