#include "src/measure/kernels/gpu.h"

#include "simd/cuda/cuda_kernels.h"
#include "src/measure/kernels/update.h"

namespace ferry::measure {
namespace {

constexpr int64_t kElements = 64 << 20;  ///< of an element-wise kernel: past every cache

double elementwise_bytes_per_s(Bench& bench, const Bound& bound) {
  bench.gpu.reset();
  auto* sum = reinterpret_cast<float*>(bench.gpu.take(kElements * 4));
  const auto* grad = reinterpret_cast<const float*>(bench.gpu.take(kElements * 4));
  void* const stream = bench.device().compute_stream();
  const double seconds = sample(bound, [&](int n) {
    return bench.seconds_of(
        n, [&] { simd::cuda::accumulate(sum, grad, DType::f32, kElements, stream); });
  });
  constexpr int64_t kTraffic_bytes = 12;
  return static_cast<double>(kTraffic_bytes * kElements) / seconds;
}

double seconds_of_launch(Bench& bench, const Bound& bound) {
  constexpr int64_t kFew = 256;
  constexpr int kLaunches = 500;  // of which the wait for the last is a small part
  bench.gpu.reset();
  auto* sum = reinterpret_cast<float*>(bench.gpu.take(kFew * 4));
  const auto* grad = reinterpret_cast<const float*>(bench.gpu.take(kFew * 4));
  void* const stream = bench.device().compute_stream();
  return sample(bound,
                [&](int n) {
                  return bench.seconds_of(n * kLaunches, [&] {
                    simd::cuda::accumulate(sum, grad, DType::f32, kFew, stream);
                  });
                }) /
         kLaunches;
}

double update_params_per_s(Bench& bench, const Bound& bound) {
  constexpr int64_t kParams = 32 << 20;
  bench.gpu.reset();
  const auto take = [&](int64_t element_bytes) { return bench.gpu.take(kParams * element_bytes); };
  const simd::UpdateArgs args = update_args(kParams, take);
  return static_cast<double>(kParams) / sample(bound, [&](int n) {
           return bench.seconds_of(n, [&] { bench.device().math().update({&args, 1}); });
         });
}

}  // namespace

void measure_gpu(Bench& bench, double seconds, GpuProfile& gpu) {
  const Bound bound = {.seconds = seconds / 3};
  gpu.memory_bytes_per_s = rounded(elementwise_bytes_per_s(bench, bound));
  gpu.launch_s = rounded(seconds_of_launch(bench, bound));
  gpu.update_params_per_s = rounded(update_params_per_s(bench, bound));
}

}  // namespace ferry::measure
