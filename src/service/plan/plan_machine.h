#pragma once
// The machine that a run is planned for: this one as its driver tells, or one that settings name.

#include <functional>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/request/run_plan.h"
#include "src/service/machine/nvidia.h"

namespace ferry::service {

struct PlannedMachine {
  PlanMachine machine;
  std::string name;                ///< "NVIDIA H200", "the CPU"
  std::vector<std::string> notes;  ///< why not for the GPU that is here, whose figures are not used
};

/** Lets all GPUs share the run where the setting machine names several of one host, and the setting
 * gpus is left out: gpus becomes their number. */
void take_gpus_of_machine(config::Config& config);

/** By the settings machine, device, gpus and gpu_memory, with the memory that is free now. `driver`
 * is asked where a GPU of this machine may be meant: NVML takes some 20 ms. Throws Error(usage) for
 * a machine that is not known or a GPU that is neither here nor given a size, or for GPUs that the
 * named machine has not, and Error(machine) for one that training would refuse. */
PlannedMachine planned_machine(const config::Config& config,
                               const std::function<const Nvidia&()>& driver);

}  // namespace ferry::service
