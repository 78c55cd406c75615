#include "offload/step/turns.h"

namespace ferry {

std::vector<Turn> turns_of(const StepShape& shape, int n_micro, bool trains) {
  std::vector<Turn> turns;
  const int n = shape.n_blocks(), first_backward = shape.first_backward();
  auto pass = [&](bool backward, auto&& each) {
    if (backward)
      for (int b = n - 1; b >= first_backward; --b)
        each(b);
    else
      for (int b = 0; b < n; ++b)
        each(b);
  };
  if (shape.order == AccumulationOrder::vertical) {
    pass(false, [&](int b) {
      for (int m = 0; m < n_micro; ++m)
        turns.push_back({false, b, m});
    });
    if (trains)
      pass(true, [&](int b) {
        for (int m = 0; m < n_micro; ++m)
          turns.push_back({true, b, m});
      });
  } else {
    for (int m = 0; m < n_micro; ++m) {
      pass(false, [&](int b) { turns.push_back({false, b, m}); });
      if (trains) pass(true, [&](int b) { turns.push_back({true, b, m}); });
    }
  }
  return turns;
}

}  // namespace ferry
