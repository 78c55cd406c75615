// Stands in for cuda_device.cpp in a build without CUDA.

#include "offload/device.h"
#include "src/base/error.h"

namespace ferry {

CudaProbe probe_cuda() {
  CudaProbe probe;
  probe.why_not = "this build has no CUDA";
  return probe;
}

std::unique_ptr<Device> make_cuda_device() {
  throw Error(Fault::machine, "cuda", "this build has no CUDA",
              "install the CUDA toolkit and build again, or use --device cpu");
}

int64_t cuda_driver_used_bytes() {
  return 0;
}

}  // namespace ferry
