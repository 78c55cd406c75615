#pragma once
// The times of `ferry plan`: what each resource of the machine does in a step, which one binds, and
// what more memory would buy.

#include <future>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "src/cli/plan/plan_texts.h"
#include "src/plan/run_plan.h"
#include "src/term/table.h"

namespace ferry::cli {

/** The gain from one more GiB of each memory. The gain of the GPU's memory is looked for beside the
 * plan itself, in a thread of its own from the construction on: it takes as long. */
class MoreMemory {
 public:
  /** Both outlive it. */
  MoreMemory(const ModelTable& model, const PlanRequest& request);

  struct Gain {
    const char* what;
    double step_s;
  };
  /** Beside this plan of the request; nothing where a step would be no faster. */
  std::vector<Gain> gains(const Plan& plan);

 private:
  const ModelTable& model_;
  const PlanRequest& request_;
  std::future<std::optional<Plan>> with_gpu_;
};

/** Says what is missing if the machine is not known. `is_verbose`: with what the machine's figures
 * assume. */
void print_plan_time(const Plan& plan,
                     const ModelTable& model,
                     const PlanRequest& request,
                     const PlanMachine& machine,
                     const PlannedTexts& texts,
                     MoreMemory& more,
                     bool is_verbose,
                     const term::Terminal& terminal);

/** Null if the machine is not known. */
nlohmann::ordered_json plan_time_json(const Plan& plan,
                                      const ModelTable& model,
                                      const PlanRequest& request,
                                      const PlannedTexts& texts,
                                      MoreMemory& more);

}  // namespace ferry::cli
