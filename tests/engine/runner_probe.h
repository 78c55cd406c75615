#pragma once
// Changes what a run leaves alone, for tests.

#include <functional>
#include <utility>

#include "src/engine/model_runner.h"

namespace ferry {

struct RunnerProbe {
  /** Changes the keys of some actions (a planted fault). */
  static void set_key_fault(ModelRunner& runner,
                            std::function<void(RandomKey&, const Action&)> fault) {
    runner.key_fault_ = std::move(fault);
  }
};

}  // namespace ferry
