#pragma once
// Measures when the actions of some steps run, by stamps on their queues. The executor asks it to
// mark each action it submits; it holds the stamps until take().

#include <vector>

#include "offload/device/device.h"
#include "offload/step/step_trace.h"

namespace ferry {

class StepTracer {
 public:
  StepTracer(Device& device, const StepShape& shape) : device_(device), shape_(shape) {}

  void begin_step() { ++step_; }
  /** Around the submission of an action. */
  void begin(const Action& action);
  void end(const Action& action);
  /** The number of steps that were begun. */
  int n_steps() const { return step_; }
  /** The marked actions, in the order in which they were submitted. All of them have run: call it
   * after Executor::settle(). */
  std::vector<TimedAction> take();

 private:
  struct Mark {
    Action action;
    int step;
    StampId begin, end;
  };
  Device& device_;
  const StepShape& shape_;
  int step_ = 0;
  StampId begun_ = 0;
  std::vector<Mark> marks_;
};

}  // namespace ferry
