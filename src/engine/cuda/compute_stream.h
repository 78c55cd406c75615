#pragma once
// Makes the device's compute queue LibTorch's current stream while it lives. Private to src/engine.

#include <memory>

namespace ferry {

class ComputeStream {
 public:
  /** `stream`: a cudaStream_t, or null off CUDA (then nothing happens). */
  explicit ComputeStream(void* stream);
  ~ComputeStream();
  ComputeStream(const ComputeStream&) = delete;
  ComputeStream& operator=(const ComputeStream&) = delete;

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

}  // namespace ferry
