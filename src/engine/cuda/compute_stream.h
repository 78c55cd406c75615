#pragma once
// Makes the device's compute queue LibTorch's current stream while it lives. Private to src/engine.

#include <memory>

namespace ferry {

class ComputeStream {
 public:
  /** `stream`: a cudaStream_t of the GPU `index`, or null off CUDA (then nothing happens). */
  ComputeStream(void* stream, int index);
  ~ComputeStream();
  ComputeStream(const ComputeStream&) = delete;
  ComputeStream& operator=(const ComputeStream&) = delete;

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

}  // namespace ferry
