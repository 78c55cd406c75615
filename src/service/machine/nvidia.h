#pragma once
// The NVIDIA driver as NVML tells, opened at run time: no build dependency, no crash without a
// driver. Used by `ferry doctor` and `ferry plan`; training asks CUDA itself.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "offload/device/gpu_support.h"

namespace ferry::service {

struct Gpu {
  std::string name;
  int64_t memory_total_bytes = 0;
  int64_t memory_free_bytes = 0;
  int compute_capability = 0;  // 90 for 9.0
  int pcie_generation = 0;     // the most that card and slot allow; 0: not told
  int pcie_width = 0;
  bool drives_display = false;
  double power_limit_w = 0;  // 0: not told
};

struct Nvidia {
  int n_pci_devices = 0;       // NVIDIA display controllers on the bus, with or without a driver
  bool has_library = false;    // libnvidia-ml.so.1 could be opened
  std::string trouble;         // why NVML does not answer; empty when it does
  int trouble_code = 0;        // nvmlReturn_t
  std::string driver_version;  // "580.65.06"
  int cuda_version = 0;        // the driver's: 13000 for 13.0
  std::vector<Gpu> gpus;
};

/** nvmlReturn_t values that have a cure of their own. */
inline constexpr int kNvmlDriverNotLoaded = 9, kNvmlNoPermission = 4, kNvmlVersionMismatch = 18;

/** As refusal_of() wants them. */
GpuFacts facts_of(const Nvidia& nvidia, const Gpu& gpu);

/** `root` holds sys/ (tests give another). Never throws. */
Nvidia read_nvidia(const std::filesystem::path& root = "/");

/** The first GPU that CUDA_VISIBLE_DEVICES leaves to programs, by its number, which counts as NVML
 * does where the GPUs are of one kind or CUDA_DEVICE_ORDER=PCI_BUS_ID; null: none. */
const Gpu* first_visible_gpu(const Nvidia& nvidia);
/** The GPUs that CUDA_VISIBLE_DEVICES leaves to programs, in its order. It may name them otherwise
 * than by numbers: then these are as many of the first ones. */
std::vector<const Gpu*> visible_gpus(const Nvidia& nvidia);
/** The number of GPUs that CUDA_VISIBLE_DEVICES leaves to programs. */
int n_visible_gpus(const Nvidia& nvidia);

}  // namespace ferry::service
