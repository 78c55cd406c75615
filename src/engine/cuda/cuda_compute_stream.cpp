#include <c10/cuda/CUDAGuard.h>

#include "src/engine/cuda/compute_stream.h"

namespace ferry {

struct ComputeStream::Guard {
  Guard(void* stream, int index)
      : current(c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream),
                                                 static_cast<c10::DeviceIndex>(index))) {}
  c10::cuda::CUDAStreamGuard current;
};

ComputeStream::ComputeStream(void* stream, int index) {
  if (stream) guard_ = std::make_unique<Guard>(stream, index);
}
ComputeStream::~ComputeStream() = default;

}  // namespace ferry
