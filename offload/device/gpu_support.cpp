#include "offload/device/gpu_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ferry {
namespace {

std::string capability(int arch) {
  return fmt::format("{}.{}", arch / 10, arch % 10);
}

/** "8.0, 8.6 and PTX of 8.6" */
std::string described(const GpuCode& code) {
  std::string text;
  for (int arch : code.archs)
    text += (text.empty() ? "" : ", ") + capability(arch);
  if (code.ptx_arch > 0) text += " and PTX of " + capability(code.ptx_arch);
  return text;
}

std::optional<GpuRefusal> refusal_of_driver(const GpuFacts& facts, int cuda_needed) {
  const int major = driver_major(facts.driver_version);
  // The number of the branch counts where both are known: NVML always tells it.
  const bool is_too_old =
      major > 0 && cuda_needed == 13
          ? major < kDriverNeeded
          : facts.driver_cuda_version > 0 && facts.driver_cuda_version / 1000 < cuda_needed;
  if (!is_too_old) return std::nullopt;
  const std::string needed = cuda_needed == 13
                                 ? fmt::format("{} or newer", kDriverNeeded)
                                 : fmt::format("one that serves CUDA {}", cuda_needed);
  return GpuRefusal{
      GpuRefusal::Of::driver,
      facts.driver_version.empty()
          ? fmt::format("the NVIDIA driver is too old: it serves CUDA {}.{}, and CUDA {} needs {}",
                        facts.driver_cuda_version / 1000, facts.driver_cuda_version % 1000 / 10,
                        cuda_needed, needed)
          : fmt::format("NVIDIA driver {} is too old: CUDA {} needs {}", facts.driver_version,
                        cuda_needed, needed),
      fmt::format("update the NVIDIA driver to {}", needed)};
}

/** Machine code runs on its own major version, from its minor one on; PTX on all that is newer. */
bool runs_on(const GpuCode& code, int capability) {
  return (code.ptx_arch > 0 && code.ptx_arch <= capability) ||
         std::ranges::any_of(code.archs, [&](int arch) {
           return arch / 10 == capability / 10 && arch <= capability;
         });
}

}  // namespace

GpuCode gpu_code_of_build() {
  GpuCode code;
  const std::string_view list = FERRY_GPU_ARCHS;  // "75,86", or nothing
  const char *at = list.data(), *end = at + list.size();
  for (int arch = 0; at < end;) {
    const auto [next, error] = std::from_chars(at, end, arch);
    if (error == std::errc{}) code.archs.push_back(arch);
    at = std::find(next, end, ',') + (std::find(next, end, ',') < end);
  }
  if (code.archs.empty()) return code;
  code.ptx_arch = FERRY_GPU_PTX;
  code.cuda_major = FERRY_CUDA_MAJOR;
  return code;
}

int driver_major(const std::string& driver_version) {
  int major = 0;
  std::from_chars(driver_version.data(), driver_version.data() + driver_version.size(), major);
  return major;
}

std::optional<GpuRefusal> refusal_of(const GpuFacts& facts, const GpuCode& code) {
  using Of = GpuRefusal::Of;
  const int cc = facts.compute_capability;
  // First what cannot be mended.
  if (cc > 0 && cc < kCapabilityNeeded && code.cuda_major >= 13)
    return GpuRefusal{
        Of::card,
        fmt::format("{} has compute capability {}; CUDA 13 and LibTorch need {} (Turing) or newer",
                    facts.name, capability(cc), capability(kCapabilityNeeded)),
        "this card cannot be used: take a newer one, or device = cpu"};
  if (auto refusal = refusal_of_driver(facts, code.cuda_major)) return refusal;
  if (code.archs.empty())
    return GpuRefusal{
        Of::build, "this build has no CUDA",
        "run scripts/setup where the GPU is: it brings the CUDA compiler and builds anew"};
  if (cc > 0 && !runs_on(code, cc))
    return GpuRefusal{
        Of::build,
        fmt::format("{} has compute capability {}, and this build holds GPU code for {}",
                    facts.name, capability(cc), described(code)),
        fmt::format("build again with -Dgpu_archs={} (or native on its machine, or all)", cc)};
  return std::nullopt;
}

}  // namespace ferry
