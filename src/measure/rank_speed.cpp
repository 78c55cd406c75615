#include "src/measure/rank_speed.h"

#include <algorithm>
#include <exception>

#include "src/base/error.h"
#include "src/base/process/out_of_memory.h"
#include "src/measure/step.h"
#include "src/request/run_plan.h"

namespace ferry::measure {
namespace {

/** Larger ones would take more memory and time, and show nearly the same: by published figures a
 * 4090 is 4.6 times as fast as a 3060 at this width, and 5.0 times at twice as much. Smaller ones
 * would show how fast kernels are launched: on an H200 a step of 2 layers and 4,096 tokens took
 * 4.2 ms, on one with half of its multiprocessors 4.9 ms, and BERT-Large 82 and 143 ms. */
struct Largest {
  int64_t layers, width, tokens_of_16_bits;
};
constexpr Largest kOnGpu = {1, 1024, 12288}, kOnCpu = {2, 512, 512};
constexpr int64_t kHeadWidth = 64, kLength_max = 512, kMicroBatches = 2;

SmallModel shape_of(const PassSize& size, const Largest& largest) {
  const int64_t width = std::clamp(size.width, kHeadWidth, largest.width) / kHeadWidth * kHeadWidth;
  const int64_t n_most = largest.tokens_of_16_bits * 2 / static_cast<int64_t>(size_of(size.type));
  const int64_t tokens = std::clamp<int64_t>(size.tokens, 1, n_most);
  const int64_t length = std::clamp<int64_t>(size.length, 1, std::min(kLength_max, tokens));
  return {.layers = largest.layers,
          .width = width,
          .heads = width / kHeadWidth,
          .sequences = tokens / length,
          .length = length};
}

}  // namespace

double seconds_of_passes(const PassSize& size, int gpu) {
  const bool cuda = gpu >= 0;
  PlanMachine machine = {.has_gpu = cuda};
  if (cuda) machine.compute_capability = probe_cuda(gpu).compute_capability;
  const SmallModel shape = shape_of(size, cuda ? kOnGpu : kOnCpu);
  const ModelTable model = make_small_model(shape, size.type, choose_attention(size.type, machine));
  try {
    return SmallRun(model, shape, cuda, Place::device, kMicroBatches, std::max(0, gpu))
        .seconds_of_step();
  } catch (const Error& error) {
    // Memory that is not to be had, or not to be pinned; the run itself may need less of it.
    if (error.fault() != Fault::does_not_fit && error.fault() != Fault::machine) throw;
  } catch (const std::exception& error) {
    if (!out_of_memory(error)) throw;
    keep_memory_reserve();
  }
  return 0;
}

}  // namespace ferry::measure
