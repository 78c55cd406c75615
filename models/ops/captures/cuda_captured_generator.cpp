#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include "models/ops/captures/captured_generator.h"
#include "src/base/error.h"

namespace ferry::ops::gpu {

/** The default generator shows nobody where its captured seed lies, so it is given a state that is
 * ours, too. */
struct CapturedGenerator::State {
  c10::DeviceIndex device = c10::cuda::current_device();
  c10::intrusive_ptr<at::CUDAGeneratorState> ours = c10::make_intrusive<at::CUDAGeneratorState>();
};

struct CapturedGenerator::Use::Replaced {
  /** A capture and its kernels take whatever state the default generator has, and a kernel outside
   * it must not find a state that is being captured. */
  GeneratorLock held;
  at::Generator generator, before;
};

namespace {

/** The state that the capture in this thread takes. */
thread_local const at::CUDAGeneratorState* captured = nullptr;

void replace_state(at::Generator& generator, const at::Generator& by) {
  const std::lock_guard lock(generator.mutex());
  generator.graphsafe_set_state(by);
}

}  // namespace

CapturedGenerator::CapturedGenerator() : state_(std::make_unique<State>()) {}
CapturedGenerator::~CapturedGenerator() = default;

CapturedGenerator::Use::Use(CapturedGenerator& captured_generator)
    : replaced_(std::make_unique<Replaced>(
          Replaced{hold_generator(),
                   at::cuda::detail::getDefaultCUDAGenerator(captured_generator.state_->device),
                   {}})) {
  const State& state = *captured_generator.state_;
  replaced_->before = replaced_->generator.graphsafe_get_state();
  replace_state(replaced_->generator,
                at::make_generator<at::CUDAGeneratorImpl>(state.device, state.ours));
  captured = state.ours.get();
}

CapturedGenerator::Use::~Use() {
  captured = nullptr;
  replace_state(replaced_->generator, replaced_->before);
}

void seed_captured_generator(const uint64_t* key_at) {
  FERRY_CHECK(captured && captured->capturing_ && captured->seed_extragraph_.defined(),
              "nothing is being captured");
  static_assert(sizeof *key_at == sizeof(int64_t));
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  C10_CUDA_CHECK(cudaMemcpyAsync(captured->seed_extragraph_.mutable_data_ptr(), key_at,
                                 sizeof *key_at, cudaMemcpyDeviceToDevice, stream));
  // Memory that was given back and returned since holds anything.
  C10_CUDA_CHECK(
      cudaMemsetAsync(captured->offset_extragraph_.mutable_data_ptr(), 0, sizeof(int64_t), stream));
}

}  // namespace ferry::ops::gpu
