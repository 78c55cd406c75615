#pragma once
// This machine beside the one that a preset was made for.

#include <string>

#include "src/base/process/host_memory.h"
#include "src/config/command_line/command_line.h"
#include "src/service/machine/nvidia.h"
#include "src/service/presets.h"

namespace ferry::service {

/** The GPU that training would take, if this build runs on it, and the memory of the host. */
MachineHere machine_here(const Nvidia& nvidia, const HostMemory& memory);

/** One line that says what this machine, or what device, gpu_memory and host_memory leave of it,
 * has less of than the one that the settings' preset was made for; empty: nothing. */
std::string note_of_smaller_machine(const config::CommandLine& command);

}  // namespace ferry::service
