#pragma once
// The times of `ferry plan`: what each resource of the machine does in a step, which one binds, and
// what more memory would buy.

#include <nlohmann/json_fwd.hpp>

#include "src/plan/run_plan.h"
#include "src/term/table.h"

namespace ferry::cli {

/** Says what is missing if the machine is not known. `n_steps`: of the run, where they are known.
 */
void print_plan_time(const Plan& plan,
                     const ModelTable& model,
                     const PlanRequest& request,
                     const PlanMachine& machine,
                     std::optional<int64_t> n_steps,
                     const term::Terminal& terminal);

/** Null if the machine is not known. */
nlohmann::ordered_json plan_time_json(const Plan& plan,
                                      const ModelTable& model,
                                      const PlanRequest& request,
                                      std::optional<int64_t> n_steps);

}  // namespace ferry::cli
