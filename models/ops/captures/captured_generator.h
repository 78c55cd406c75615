#pragma once
// LibTorch's random generator while work is recorded into a CUDA graph: its kernels then read seed
// and offset from GPU memory, which the graph fills itself each time it runs.

#include <cstdint>
#include <memory>
#include <mutex>

namespace ferry::ops::gpu {

/** The memory of seed and offset for the graphs of one stream. Graphs of two streams may run at
 * once. */
class CapturedGenerator {
 public:
  /** Makes the memory on LibTorch's current GPU. */
  CapturedGenerator();
  ~CapturedGenerator();
  CapturedGenerator(const CapturedGenerator&) = delete;
  CapturedGenerator& operator=(const CapturedGenerator&) = delete;

  /** Makes it the GPU's default generator, which a capture (at::cuda::CUDAGraph) that begins and
   * ends meanwhile takes. Other threads that draw random numbers wait. */
  class Use {
   public:
    explicit Use(CapturedGenerator& generator);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    struct Replaced;
    std::unique_ptr<Replaced> replaced_;
  };

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/** Seeds the default generator inside a capture on the current stream: with the key at `key_at`
 * (GPU memory), from offset 0. */
void seed_captured_generator(const uint64_t* key_at);

/** Held from where the default generator is seeded to where a kernel has taken the seed, and
 * through a whole capture: the process has one generator, for all sessions. */
using GeneratorLock = std::unique_lock<std::recursive_mutex>;
inline GeneratorLock hold_generator() {
  static std::recursive_mutex mutex;
  return GeneratorLock(mutex);
}

}  // namespace ferry::ops::gpu
