#include "src/measure/kernels/update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "offload/device/host/cpu_math.h"
#include "src/base/error.h"
#include "src/measure/transfers/copy_traffic.h"

namespace ferry::measure {
namespace {

/** Further than this between the ends of two segments: starts a power of two apart would push each
 * other out of the caches, and a run's segments are not so. */
constexpr int64_t kStagger_bytes = 132 * kTensorAlignment_bytes;
/** More would only take longer; fewer stay in the caches. */
constexpr int64_t kParams_max = 64 << 20, kParams_min = 1 << 20;
/** Bytes of a parameter: master, m, v, gradient, weight. */
constexpr int64_t kStored_bytes = 4 + 4 + 4 + 2 + 2;

/** Parameters for which there is room. */
int64_t params_in(const Arena& arena) {
  const int64_t room_bytes = arena.n_bytes() - 5 * kStagger_bytes;
  return std::min(kParams_max,
                  room_bytes / kStored_bytes / simd::kTask_elements * simd::kTask_elements);
}

std::byte* take_segment(Arena& arena, int64_t n_bytes) {
  return arena.take(n_bytes + kStagger_bytes);
}

/** The segments of one block, filled with numbers that stay normal. */
simd::UpdateArgs make_segments(Bench& bench) {
  bench.update_arena.reset();
  const int64_t n = params_in(bench.update_arena);
  if (n < kParams_min)
    throw Error(Fault::does_not_fit, "measure.update",
                fmt::format("{} of host memory are too little to measure AdamW in",
                            format_bytes(std::max<int64_t>(0, bench.update_arena.n_bytes()))),
                "end other programs, or raise the memory limit");
  const auto segment = [&](int64_t element_bytes) {
    std::byte* const at = take_segment(bench.update_arena, n * element_bytes);
    if (bench.is_update_filled) return at;
    const int64_t n_tasks = n / simd::kTask_elements;
    bench.pool().parallel_for(n_tasks, [&](int64_t i) {  // 0x3c3c... is 0.0115 in every type
      std::memset(at + i * simd::kTask_elements * element_bytes, 0x3c,
                  static_cast<size_t>(simd::kTask_elements * element_bytes));
    });
    return at;
  };
  const simd::UpdateArgs args = update_args(n, segment);
  bench.is_update_filled = true;
  return args;
}

std::vector<int> thread_counts(int most) {
  std::vector<int> counts;
  for (int n = 1; n < most; n *= 2)
    counts.push_back(n);
  counts.push_back(most);
  return counts;
}

/** Parameters per second. */
double rate_of(const simd::UpdateArgs& args, CpuMath& math, const Bound& bound) {
  const auto run = [&](int n) {
    const auto start = Clock::now();
    for (int i = 0; i < n; ++i)
      math.update({&args, 1});
    return seconds_since(start);
  };
  return rounded(static_cast<double>(args.n) / sample(bound, run));
}

/** Copies both ways run all the while. */
void measure_beside_copies(Bench& bench,
                           const simd::UpdateArgs& args,
                           CpuMath& math,
                           const Bound& bound,
                           UpdateRate& rate) {
  CopyTraffic traffic(bench, {.piece_bytes = std::min(32 * kMiB, bench.from_host.n_bytes())});
  const auto start = Clock::now();
  rate.beside_copies = rate_of(args, math, bound);
  traffic.stop();
  rate.h2d_beside = rounded(traffic.bytes_per_s(QueueId::h2d, start));
  rate.d2h_beside = rounded(traffic.bytes_per_s(QueueId::d2h, start));
}

/** A line of each array after the other, as AdamW goes through them. */
void modify(uint32_t* const (&arrays)[3], int64_t begin, int64_t n, uint32_t change) {
  constexpr int64_t kLine = 16, kAhead = 16 * kLine;
  for (int64_t i = begin; i < begin + n; i += kLine)
    for (uint32_t* const x : arrays) {
      __builtin_prefetch(x + i + kAhead, /*write=*/1);
      for (int64_t j = i; j < i + kLine; ++j)
        x[j] ^= change;
    }
}

}  // namespace

int64_t update_bytes_most() {
  return kParams_max * kStored_bytes + 5 * kStagger_bytes;
}

void touch_update_segments(WorkerPool& pool, Arena arena) {
  const int64_t n = params_in(arena);
  if (n < kParams_min) return;
  update_args(n, [&](int64_t element_bytes) {
    std::byte* const at = take_segment(arena, n * element_bytes);
    touch_first(pool, at, n * element_bytes);
    return at;
  });
}

std::vector<UpdateRate> measure_updates(Bench& bench, double seconds, bool only_all_threads) {
  const simd::UpdateArgs args = make_segments(bench);
  const std::vector<int> counts =
      only_all_threads ? std::vector<int>{bench.n_threads()} : thread_counts(bench.n_threads());
  const bool has_copies = bench.is_cuda() && bench.from_host.n_bytes() > 0;
  const Bound bound = {.seconds = seconds / static_cast<double>(counts.size()) / (has_copies + 1)};
  std::vector<UpdateRate> rates;
  for (const int n_threads : counts) {
    const auto pool = make_tbb_pool(n_threads);
    CpuMath math(*pool);
    UpdateRate rate{.n_threads = n_threads, .alone = rate_of(args, math, bound)};
    if (has_copies) measure_beside_copies(bench, args, math, bound, rate);
    rates.push_back(rate);
  }
  return rates;
}

double measure_dram(Bench& bench, double seconds) {
  const simd::UpdateArgs args = make_segments(bench);
  uint32_t* const states[] = {static_cast<uint32_t*>(static_cast<void*>(args.master)),
                              static_cast<uint32_t*>(args.states[0].values),
                              static_cast<uint32_t*>(args.states[1].values)};
  const uint32_t nothing = static_cast<uint32_t>(args.n < 0);  // the compiler does not know it
  const auto run = [&](int n) {
    const auto start = Clock::now();
    for (int i = 0; i < n; ++i)
      bench.pool().parallel_for(args.n / simd::kTask_elements, [&](int64_t task) {
        modify(states, task * simd::kTask_elements, simd::kTask_elements, nothing);
      });
    return seconds_since(start);
  };
  constexpr int64_t kTraffic_bytes = 3 * 2 * sizeof(uint32_t);
  return rounded(static_cast<double>(kTraffic_bytes * args.n) / sample({.seconds = seconds}, run));
}

}  // namespace ferry::measure
