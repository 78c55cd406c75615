#pragma once
// The load of a GPU now, as NVML tells it, for a display that asks every second.

#include <cstdint>
#include <memory>
#include <optional>

namespace ferry::service {

/** At one moment; nothing where the driver or the card does not tell. */
struct GpuLoad {
  std::optional<double> busy_share;  ///< of the last second or less, in which kernels ran: 0 to 1
  std::optional<int64_t> memory_used_bytes, memory_total_bytes;  ///< of all programs
  std::optional<double> power_w;
  std::optional<int> temperature_c;
};

/** Keeps the driver's library open from one reading to the next: a reading takes about a
 * millisecond, opening it tens. For one thread. */
class GpuMeter {
 public:
  GpuMeter();
  ~GpuMeter();
  GpuMeter(const GpuMeter&) = delete;
  GpuMeter& operator=(const GpuMeter&) = delete;

  /** 0 without a driver. */
  int n_gpus() const { return n_gpus_; }
  /** `gpu`: its number in Nvidia::gpus (src/service/machine/nvidia.h). */
  GpuLoad read(int gpu) const;

 private:
  struct Driver;
  std::unique_ptr<Driver> driver_;  ///< null: NVML does not answer
  int n_gpus_ = 0;
};

}  // namespace ferry::service
