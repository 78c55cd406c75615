#include "offload/step/passes.h"

namespace ferry {

std::vector<BlockPass> passes_of(const StepShape& shape, int n_micro, bool trains) {
  std::vector<BlockPass> passes;
  const int n = shape.n_blocks(), first_backward = shape.first_backward();
  auto each_block = [&](bool backward, auto&& each) {
    if (backward)
      for (int b = n - 1; b >= first_backward; --b)
        each(b);
    else
      for (int b = 0; b < n; ++b)
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
