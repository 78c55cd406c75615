// Stands in for cuda_compute_stream.cpp in a build without CUDA.

#include "src/engine/cuda/compute_stream.h"

namespace ferry {

struct ComputeStream::Guard {};

ComputeStream::ComputeStream(void*, int) {}
ComputeStream::~ComputeStream() = default;

}  // namespace ferry
