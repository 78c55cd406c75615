#pragma once
// The question that a preset asks of the planner. Apart from presets.h, which the app includes
// beside Qt and without the plan.

#include <optional>

#include "src/config/config.h"
#include "src/request/run_plan.h"
#include "src/service/presets.h"

namespace ferry::service {

struct PresetRequest {
  config::Config settings;
  PlanMachine machine;
  ModelTable model;
  PlanRequest request;
};

/** The preset on its card with its host memory; without a card on a CPU with the figures in `own`,
 * if any. Throws as plan_preset() does. */
PresetRequest preset_request(const PresetFacts& facts,
                             const std::optional<MachineProfile>& own = {});

}  // namespace ferry::service
