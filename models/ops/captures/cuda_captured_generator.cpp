#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include <mutex>

#include "models/ops/captures/captured_generator.h"
#include "src/base/error.h"

namespace ferry::ops::gpu {
namespace {

/** The default generator shows nobody where its captured seed lies, so it is given a state that is
 * ours, too. */
const c10::intrusive_ptr<at::CUDAGeneratorState>& generator_state() {
  static const auto state = [] {
    auto ours = c10::make_intrusive<at::CUDAGeneratorState>();
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(0);
    const std::lock_guard lock(generator.mutex());
    generator.graphsafe_set_state(
        at::make_generator<at::CUDAGeneratorImpl>(static_cast<at::DeviceIndex>(0), ours));
    return ours;
  }();
  return state;
}

}  // namespace

void prepare_captures() {
  generator_state();
}

void seed_captured_generator(const uint64_t* key_at) {
  const at::CUDAGeneratorState& state = *generator_state();
  FERRY_CHECK(state.capturing_ && state.seed_extragraph_.defined(), "nothing is being captured");
  static_assert(sizeof *key_at == sizeof(int64_t));
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  C10_CUDA_CHECK(cudaMemcpyAsync(state.seed_extragraph_.mutable_data_ptr(), key_at, sizeof *key_at,
                                 cudaMemcpyDeviceToDevice, stream));
  // Memory that was given back and returned since holds anything.
  C10_CUDA_CHECK(
      cudaMemsetAsync(state.offset_extragraph_.mutable_data_ptr(), 0, sizeof(int64_t), stream));
}

}  // namespace ferry::ops::gpu
