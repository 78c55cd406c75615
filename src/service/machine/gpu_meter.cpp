#include "src/service/machine/gpu_meter.h"

#include "src/service/machine/nvml.h"

namespace ferry::service {

namespace {

struct Utilization {
  unsigned gpu, memory;  // percent
};

}  // namespace

struct GpuMeter::Driver {
  nvml::Library library;
};

GpuMeter::GpuMeter() {
  auto driver = std::make_unique<Driver>();
  driver->library = nvml::open_library();
  if (!driver->library || nvml::start(driver->library) != 0) return;
  driver_ = std::move(driver);
  unsigned n_gpus = 0;
  if (nvml::succeeds(driver_->library, "nvmlDeviceGetCount_v2", &n_gpus))
    n_gpus_ = static_cast<int>(n_gpus);
}

GpuMeter::~GpuMeter() {
  if (driver_) nvml::succeeds(driver_->library, "nvmlShutdown");
}

GpuLoad GpuMeter::read(int gpu) const {
  GpuLoad load;
  nvml::Device device = nullptr;
  if (gpu < 0 || gpu >= n_gpus_ ||
      !nvml::succeeds(driver_->library, "nvmlDeviceGetHandleByIndex_v2", static_cast<unsigned>(gpu),
                      &device))
    return load;
  Utilization busy{};
  if (nvml::succeeds(driver_->library, "nvmlDeviceGetUtilizationRates", device, &busy))
    load.busy_share = busy.gpu / 100.0;
  nvml::Memory memory{};
  if (nvml::succeeds(driver_->library, "nvmlDeviceGetMemoryInfo", device, &memory)) {
    load.memory_used_bytes = static_cast<int64_t>(memory.used);
    load.memory_total_bytes = static_cast<int64_t>(memory.total);
  }
  unsigned power_mw = 0, temperature_c = 0;
  if (nvml::succeeds(driver_->library, "nvmlDeviceGetPowerUsage", device, &power_mw))
    load.power_w = power_mw / 1000.0;
  constexpr unsigned kOfTheChip = 0;
  if (nvml::succeeds(driver_->library, "nvmlDeviceGetTemperature", device, kOfTheChip,
                     &temperature_c))
    load.temperature_c = static_cast<int>(temperature_c);
  return load;
}

}  // namespace ferry::service
