#pragma once
// The times of `ferry plan`: what each resource of the machine does in a step, which one binds, and
// what more memory would buy.

#include <nlohmann/json_fwd.hpp>

#include "src/service/plan/plan_answer.h"
#include "src/term/table.h"

namespace ferry::cli {

/** For an answer with a plan that fits. Says what is missing if the machine is not known.
 * `is_verbose`: with what the machine's figures assume. */
void print_plan_time(const service::PlanAnswer& answer,
                     bool is_verbose,
                     const term::Terminal& terminal);

/** Null if the machine is not known. */
nlohmann::ordered_json plan_time_json(const service::PlanAnswer& answer);

}  // namespace ferry::cli
