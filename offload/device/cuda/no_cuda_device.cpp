// Stands in for cuda_device.cpp in a build without CUDA.

#include "offload/device/device.h"
#include "src/base/error.h"

namespace ferry {
namespace {

constexpr const char* kCure =
    "run scripts/setup where the GPU is: it brings the CUDA compiler and builds anew; or use "
    "device = "
    "cpu";

}  // namespace

CudaProbe probe_cuda(int) {
  CudaProbe probe;
  probe.why_not = "this build has no CUDA";
  probe.cure = kCure;
  return probe;
}

CudaProbe probe_other_gpu(int index) {
  return probe_cuda(index);
}

std::unique_ptr<Device> make_cuda_device(HostWaits, int64_t, int index) {
  const CudaProbe probe = probe_cuda(index);
  throw Error(Fault::machine, "cuda", probe.why_not, probe.cure);
}

int64_t cuda_driver_used_bytes(int) {
  return 0;
}

}  // namespace ferry
