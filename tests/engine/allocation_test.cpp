// Every large allocation is made before step 1 (promise 1): after warm-up nothing of 1 MiB or more
// comes from malloc, and on a GPU the driver counts the same bytes step after step. This program
// stands in front of the C library's allocators.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "tests/engine/toy_runs.h"

namespace {

std::atomic<bool> armed{false};
std::atomic<int> n_large{0};
std::atomic<size_t> largest{0};

void count(size_t size) {
  constexpr size_t kLarge_bytes = 1 << 20;
  if (size < kLarge_bytes || !armed.load(std::memory_order_relaxed)) return;
  ++n_large;
  size_t seen = largest.load();
  while (seen < size && !largest.compare_exchange_weak(seen, size)) {
  }
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
void* malloc(size_t size) {
  static auto real = next<void* (*)(size_t)>("malloc");
  count(size);
  return real(size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  static auto real = next<int (*)(void**, size_t, size_t)>("posix_memalign");
  count(size);
  return real(out, alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  static auto real = next<void* (*)(size_t, size_t)>("aligned_alloc");
  count(size);
  return real(alignment, size);
}
void* realloc(void* old, size_t size) {
  static auto real = next<void* (*)(void*, size_t)>("realloc");
  count(size);
  return real(old, size);
}
}

namespace ferry::testing {
namespace {

constexpr int kWarmup_steps = 6,
              kSteps = 10;  // step 5 has fewer micro-batches: its list is made then

int large_allocations_after_warmup(const ToyModel& model, ToyPlacement placement) {
  n_large = 0;
  largest = 0;
  placement.before_step = [](int step) { armed = step >= kWarmup_steps && step < kSteps; };
  run_toy(model, placement, kSteps);
  armed = false;
  return n_large;
}

TEST(Allocations, TheCounterCounts) {
  armed = true;
  n_large = 0;
  void* p = std::malloc(2 << 20);
  armed = false;
  EXPECT_NE(p, nullptr);
  std::free(p);
  EXPECT_EQ(n_large, 1);
}

TEST(Allocations, NoneAfterWarmup) {
  auto model = minilm();
  if (!model) GTEST_SKIP() << "all-MiniLM-L6-v2 is not in .venv: run scripts/setup";
  for (Place place : {Place::gpu, Place::host}) {
    ToyPlacement placement;
    placement.place = place;
    // Reading the segments for comparison comes after the last step, so the count is the steps'
    // own.
    EXPECT_EQ(large_allocations_after_warmup(*model, placement), 0)
        << name_of(place) << ", largest " << largest.load();
  }
}

TEST(Allocations, OnAGpuTheDriverCountsTheSameStepAfterStep) {
  if (CudaProbe probe = probe_cuda(); !probe.usable)
    GTEST_SKIP() << "no usable GPU: " << probe.why_not;
  for (Place place : {Place::gpu, Place::host}) {
    ToyPlacement placement;
    placement.device = DeviceKind::cuda;
    placement.place = place;
    int64_t after_warmup = 0, largest_since = 0;
    placement.before_step = [&](int step) {
      if (step < kWarmup_steps) return;
      const int64_t used = cuda_driver_used_bytes();
      if (step == kWarmup_steps) after_warmup = used;
      largest_since = std::max(largest_since, used);
    };
    run_toy(small_bert(DType::bf16, LossKind::cross_entropy, AttentionBackend::flash), placement,
            kSteps);
    EXPECT_GT(after_warmup, 0);
    EXPECT_EQ(largest_since, after_warmup) << name_of(place);
  }
}

}  // namespace
}  // namespace ferry::testing
