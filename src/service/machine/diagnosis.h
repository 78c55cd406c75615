#pragma once
// The conclusions of `ferry doctor` from what it found: a pure function, so that every fault can be
// tested without the machine that has it.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/base/process/host_memory.h"
#include "src/plan/machine/machine_profile.h"
#include "src/service/machine/drive_wear.h"
#include "src/service/machine/host.h"
#include "src/service/machine/nvidia.h"

namespace ferry::service {

struct Facts {
  Host host;
  HostMemory memory;
  Nvidia nvidia;
  GpuCode gpu_code;          // what this build holds
  std::string simd_level;    // in use: "scalar", "avx2", "avx512"; empty: see simd_trouble
  std::string simd_trouble;  // what a wrong FERRY_SIMD gave
  std::optional<std::filesystem::path> trainer;  // nullopt: see trainer_trouble
  std::string trainer_trouble;
  std::vector<std::string> presets;
  std::vector<std::string> presets_here;  // of them, those made for no more than this machine
  /** The drives that FERRY_NVME_PATH, or whoever asks, names. */
  std::vector<std::filesystem::path> nvme_directories;
  std::string nvme_trouble;               // why these were not measured
  DriveWear wear;                         // of these
  bool hides_gpus = false;                // CUDA_VISIBLE_DEVICES leaves none of those that are here
  std::optional<MachineProfile> profile;  // measured now, or stored
  bool is_measured_now = false;
  std::string measure_trouble;  // why there is none; empty: none was asked for
  std::string store_trouble;    // why it could not be kept
};

enum class Severity { note, warning, error };  // error: training cannot run

/** A cure that a program can bring about itself. */
enum class Mend : uint8_t {
  none,
  measure,        // measure this machine, again
  runs_directory  // runs go to another disk
};

struct Finding {
  Severity severity;
  std::string what;
  std::string cure;  // what to do; may be empty for a note
  Mend mend = Mend::none;
};

/** Everything worth saying, the gravest first. */
std::vector<Finding> diagnose(const Facts& facts);

}  // namespace ferry::service
