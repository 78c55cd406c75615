#include "src/service/machine/nvidia.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "src/service/machine/nvml.h"

namespace ferry::service {

namespace fs = std::filesystem;

namespace {

std::string first_word(const fs::path& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

int count_pci_devices(const fs::path& root) {
  int n_devices = 0;
  std::error_code error;
  for (const auto& device : fs::directory_iterator(root / "sys/bus/pci/devices", error))
    if (first_word(device.path() / "vendor") == "0x10de" &&
        first_word(device.path() / "class").starts_with("0x03"))
      ++n_devices;
  return n_devices;
}

Gpu read_gpu(const nvml::Library& library, nvml::Device device) {
  Gpu gpu;
  char name[nvml::kTextSize] = {};
  if (nvml::succeeds(library, "nvmlDeviceGetName", device, &name[0], nvml::kTextSize))
    gpu.name = name;
  nvml::Memory memory{};
  if (nvml::succeeds(library, "nvmlDeviceGetMemoryInfo", device, &memory)) {
    gpu.memory_total_bytes = static_cast<int64_t>(memory.total);
    gpu.memory_free_bytes = static_cast<int64_t>(memory.free);
  }
  int major = 0, minor = 0;
  if (nvml::succeeds(library, "nvmlDeviceGetCudaComputeCapability", device, &major, &minor))
    gpu.compute_capability = 10 * major + minor;
  unsigned value = 0;
  if (nvml::succeeds(library, "nvmlDeviceGetMaxPcieLinkGeneration", device, &value))
    gpu.pcie_generation = static_cast<int>(value);
  if (nvml::succeeds(library, "nvmlDeviceGetMaxPcieLinkWidth", device, &value))
    gpu.pcie_width = static_cast<int>(value);
  unsigned power_mw = 0;
  if (nvml::succeeds(library, "nvmlDeviceGetEnforcedPowerLimit", device, &power_mw))
    gpu.power_limit_w = power_mw / 1000.0;
  int is_active = 0;
  if (nvml::succeeds(library, "nvmlDeviceGetDisplayActive", device, &is_active))
    gpu.drives_display = is_active != 0;
  return gpu;
}

}  // namespace

GpuFacts facts_of(const Nvidia& nvidia, const Gpu& gpu) {
  return {.name = gpu.name,
          .compute_capability = gpu.compute_capability,
          .driver_version = nvidia.driver_version,
          .driver_cuda_version = nvidia.cuda_version};
}

Nvidia read_nvidia(const fs::path& root) {
  Nvidia nvidia;
  nvidia.n_pci_devices = count_pci_devices(root);
  const nvml::Library library = nvml::open_library();
  if (!library) return nvidia;
  nvidia.has_library = true;

  if (const nvml::Return code = nvml::start(library); code != 0) {
    auto* error_text = nvml::symbol<const char*(nvml::Return)>(library, "nvmlErrorString");
    nvidia.trouble = code > 0 && error_text ? error_text(code) : "the library is too old";
    nvidia.trouble_code = code;
    return nvidia;
  }
  char version[nvml::kTextSize] = {};
  if (nvml::succeeds(library, "nvmlSystemGetDriverVersion", &version[0], nvml::kTextSize))
    nvidia.driver_version = version;
  nvml::succeeds(library, "nvmlSystemGetCudaDriverVersion_v2", &nvidia.cuda_version);
  unsigned n_gpus = 0;
  if (!nvml::succeeds(library, "nvmlDeviceGetCount_v2", &n_gpus)) n_gpus = 0;
  for (unsigned i = 0; i < n_gpus; ++i) {
    nvml::Device device = nullptr;
    if (nvml::succeeds(library, "nvmlDeviceGetHandleByIndex_v2", i, &device))
      nvidia.gpus.push_back(read_gpu(library, device));
  }
  nvml::succeeds(library, "nvmlShutdown");
  return nvidia;
}

std::vector<const Gpu*> visible_gpus(const Nvidia& nvidia) {
  std::vector<const Gpu*> all, listed;
  for (const Gpu& gpu : nvidia.gpus)
    all.push_back(&gpu);
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!text || all.empty()) return all;
  const std::string_view list = text;
  const auto n_listed = static_cast<size_t>(1 + std::ranges::count(list, ','));
  if (list.starts_with("GPU-") || list.starts_with("MIG-")) {
    all.resize(std::min(all.size(), n_listed));
    return all;
  }
  for (size_t begin = 0; begin <= list.size();) {
    const size_t comma = std::min(list.find(',', begin), list.size());
    const std::string_view word = list.substr(begin, comma - begin);
    size_t index = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    const bool is_number = error == std::errc() && end == word.data() + word.size();
    if (!is_number || index >= all.size()) break;  // CUDA, too, leaves out what follows
    listed.push_back(all[index]);
    begin = comma + 1;
  }
  return listed;
}

const Gpu* first_visible_gpu(const Nvidia& nvidia) {
  const std::vector<const Gpu*> gpus = visible_gpus(nvidia);
  return gpus.empty() ? nullptr : gpus.front();
}

int n_visible_gpus(const Nvidia& nvidia) {
  return static_cast<int>(visible_gpus(nvidia).size());
}

}  // namespace ferry::service
