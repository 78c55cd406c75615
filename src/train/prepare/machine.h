#pragma once
// The abilities of this machine, found out once at the start of the trainer.

#include <span>
#include <string>
#include <vector>

#include "offload/device/device.h"
#include "src/config/config.h"
#include "src/request/run_plan.h"

namespace ferry {

struct Machine {
  PlanMachine plan;
  std::string device_name;       ///< "NVIDIA H200", "CPU"
  int n_cores = 1;               ///< this process may run on
  bool has_unlike_gpus = false;  ///< those of this host that take part are of several models
  std::string note;  ///< why a GPU that is there is not used, and what to do; may be empty
};

/** device = auto takes a usable GPU; device = cuda without one is Error(machine). Drives of
 * nvme_path whose rates are not known are measured. `gpus`: indices of the GPUs of this host that
 * take part, this process's first. */
Machine detect_machine(const config::Config& config, const std::vector<int>& gpus = {0});

/** Puts the GPUs of a run's ranks on this host into the machine, one probe each, with the memory of
 * each where they are unlike. Its note says where they are of several models, and names the GPU
 * with the least memory. */
void take_gpus(std::span<const CudaProbe> probes, std::span<const int> gpus, Machine& machine);

/** Highest resident set of this process so far (VmHWM), and what it is now (VmRSS). */
int64_t peak_process_bytes();
int64_t process_bytes();

}  // namespace ferry
