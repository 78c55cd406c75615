#include <c10/cuda/CUDAGuard.h>

#include "src/engine/cuda/compute_stream.h"

namespace ferry {

struct ComputeStream::Guard {
  explicit Guard(void* stream)
      : current(c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream), 0)) {}
  c10::cuda::CUDAStreamGuard current;
};

ComputeStream::ComputeStream(void* stream) {
  if (stream) guard_ = std::make_unique<Guard>(stream);
}
ComputeStream::~ComputeStream() = default;

}  // namespace ferry
