#pragma once
// Machines for the planner's tests: simple rates, so that what a step takes can be worked out by
// hand.

#include "src/base/bytes.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry::test {

struct MachineRates {
  double flops_per_s = 400e12;
  double copy_bytes_per_s = 50e9;
  double update_params_per_s = 5e9;
  /** The part of the rates that the host's memory leaves when copies and updates share it. */
  double shared = 1.0;
};

/** Every product and attention runs at the same rate; other operations and launches cost nothing to
 * speak of. */
inline MachineProfile even_machine(const MachineRates& rates) {
  MachineProfile machine;
  machine.name = "even";
  machine.source = "made for a test";
  GpuProfile gpu;
  gpu.name = "even";
  gpu.compute_capability = 90;
  gpu.memory_bytes = 80 * kGiB;
  gpu.memory_bytes_per_s = 1e18;
  gpu.update_params_per_s = 1e15;
  gpu.launch_s = 1e-12;
  for (int64_t n_bytes : {kMiB, 64 * kMiB})
    gpu.copies.push_back({.n_bytes = n_bytes,
                          .h2d = rates.copy_bytes_per_s,
                          .d2h = rates.copy_bytes_per_s,
                          .h2d_beside_d2h = rates.copy_bytes_per_s,
                          .d2h_beside_h2d = rates.copy_bytes_per_s});
  for (DType type : {DType::bf16, DType::f16, DType::f32}) {
    for (int64_t rows : {64, 16384})
      for (int64_t width : {64, 8192})
        gpu.gemms.push_back({type, rows, width, rates.flops_per_s});
    for (const char* backend : {"flash", "memory_efficient"})
      for (int64_t length : {128, 2048})
        gpu.attentions.push_back({type, backend, length, 64, rates.flops_per_s, rates.flops_per_s});
  }
  machine.gpu = gpu;
  machine.host = {.cpu = "even",
                  .n_threads = 8,
                  .simd = "avx2",
                  .memory_bytes = 128 * kGiB,
                  .updates = {{.n_threads = 8,
                               .alone = rates.update_params_per_s,
                               .beside_copies = rates.update_params_per_s * rates.shared,
                               .h2d_beside = rates.copy_bytes_per_s * rates.shared,
                               .d2h_beside = rates.copy_bytes_per_s * rates.shared}},
                  .memory_bytes_per_s = 28 * rates.update_params_per_s,
                  .gemms = gpu.gemms,
                  .attentions = {}};
  return machine;
}

/** The same with a drive. */
inline MachineProfile with_drive(MachineProfile machine,
                                 double read_bytes_per_s = 7e9,
                                 double write_bytes_per_s = 5e9,
                                 double mixed_bytes_per_s = 3e9) {
  machine.nvme = {{.read_bytes_per_s = read_bytes_per_s,
                   .write_bytes_per_s = write_bytes_per_s,
                   .mixed_bytes_per_s = mixed_bytes_per_s,
                   .flush_s = 1e-3}};
  return machine;
}

}  // namespace ferry::test
