#include "offload/executor/step_tracer.h"

#include <cmath>

namespace ferry {

void StepTracer::begin(const Action& action) {
  begun_ = device_.stamp(action.queue);
}

void StepTracer::end(const Action& action) {
  marks_.push_back({action, step_, begun_, device_.stamp(action.queue)});
}

std::vector<TimedAction> StepTracer::take() {
  std::vector<TimedAction> actions;
  for (const Mark& mark : marks_) {
    TimedAction timed = {.name = describe(mark.action, shape_),
                         .queue = mark.action.queue,
                         .verb = mark.action.verb,
                         .block = mark.action.block,
                         .step = mark.step,
                         .begin_s = device_.seconds_of(mark.begin),
                         .end_s = device_.seconds_of(mark.end)};
    // A failed step has stamps that never happened.
    if (std::isfinite(timed.begin_s) && std::isfinite(timed.end_s))
      actions.push_back(std::move(timed));
  }
  marks_.clear();
  device_.forget_stamps();
  return actions;
}

}  // namespace ferry
