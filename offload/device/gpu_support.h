#pragma once
// Decides whether this build runs on a card under a driver: facts go in, a sentence and its cure
// come out, so that every case is tested where there is no GPU. The CUDA device's probe asks it,
// and so do `ferry doctor` and `ferry plan`, with the facts that NVML gives. No CUDA here.

#include <optional>
#include <string>
#include <vector>

namespace ferry {

/** The code that -Dgpu_archs made. Compute capabilities are written 90 for 9.0. */
struct GpuCode {
  std::vector<int> archs;  ///< archs with machine code; empty: a build without CUDA
  int ptx_arch = 0;        ///< PTX, which the driver compiles for this one and newer; 0: none
  int cuda_major = 13;     ///< the runtime's version
};
GpuCode gpu_code_of_build();

struct GpuFacts {
  std::string name;
  int compute_capability = 0;   ///< 0: not known
  std::string driver_version;   ///< "580.65.06"; empty: not known
  int driver_cuda_version = 0;  ///< the newest CUDA that the driver serves; 0: not known
};

struct GpuRefusal {
  enum class Of { driver, card, build };
  Of of;  ///< the part that is to be changed
  std::string what, cure;
};

/** The driver that CUDA 13 (LibTorch's wheel) asks for. */
inline constexpr int kDriverNeeded = 580;
/** The oldest card that CUDA 13 and LibTorch's build with it run on: Turing. */
inline constexpr int kCapabilityNeeded = 75;

/** The gravest reason why the build does not run; nothing where it runs. A fact that is not known
 * is no reason. */
std::optional<GpuRefusal> refusal_of(const GpuFacts& facts, const GpuCode& code);

/** 580 of "580.65.06"; 0 when it is no number. */
int driver_major(const std::string& driver_version);

}  // namespace ferry
