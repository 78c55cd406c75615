#pragma once
// The devices that every promise of device.h is tried on: the simulated ones always, the CUDA
// device where there is one, with both ways in which its streams wait for the host.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "offload/device/device.h"

namespace ferry::test {

enum class TestedDevice { serial, adversarial, threads, cuda, cuda_host_threads };
static_assert(static_cast<int>(TestedDevice::serial) == static_cast<int>(SimulatedMode::serial) &&
              static_cast<int>(TestedDevice::adversarial) ==
                  static_cast<int>(SimulatedMode::adversarial) &&
              static_cast<int>(TestedDevice::threads) == static_cast<int>(SimulatedMode::threads));
inline constexpr std::array kTestedDevices = {TestedDevice::serial, TestedDevice::adversarial,
                                              TestedDevice::threads, TestedDevice::cuda,
                                              TestedDevice::cuda_host_threads};

inline std::string name_of(TestedDevice kind) {
  constexpr std::array kNames = {"serial", "adversarial", "threads", "cuda", "cuda_host_threads"};
  return kNames.at(static_cast<size_t>(kind));
}
constexpr bool is_cuda(TestedDevice kind) {
  return kind >= TestedDevice::cuda;
}

/** Why there is no device of this kind here; empty: there is. */
inline std::string why_none(TestedDevice kind) {
  if (!is_cuda(kind)) return "";
  const CudaProbe probe = probe_cuda();
  return probe.usable ? "" : "no CUDA device: " + probe.why_not;
}

inline std::unique_ptr<Device> make_device(TestedDevice kind,
                                           WorkerPool& pool,
                                           SimulatedOptions options = {}) {
  if (is_cuda(kind))
    return make_cuda_device(kind == TestedDevice::cuda ? HostWaits::driver : HostWaits::threads,
                            options.pinned_bytes_max);
  options.mode = static_cast<SimulatedMode>(kind);
  return make_simulated_device(options, pool);
}

}  // namespace ferry::test
