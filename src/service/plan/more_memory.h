#pragma once
// The gain from one more GiB of each memory.

#include <future>
#include <optional>
#include <vector>

#include "src/plan/plan.h"

namespace ferry::service {

/** The time of a step with one more GiB. */
struct MemoryGain {
  const char* what;  ///< "GPU memory", "host memory"
  double step_s;
};

/** The gain of the GPU's memory is looked for in a thread of its own: it takes as long as the plan
 * itself. With one GPU the thread begins at the construction. Several GPUs share the step as in the
 * plan, so it begins when there is one. */
class MoreMemory {
 public:
  /** Both outlive it. */
  MoreMemory(const ModelTable& model, const PlanRequest& request);

  /** Beside this plan of the request; nothing where a step would be no faster. */
  std::vector<MemoryGain> gains(const Plan& plan);

 private:
  void begin(const PlanRequest& request);

  const ModelTable& model_;
  const PlanRequest& request_;
  std::future<std::optional<Plan>> with_gpu_;
};

}  // namespace ferry::service
