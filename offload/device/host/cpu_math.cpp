#include "offload/device/host/cpu_math.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace ferry {

void CpuMath::split(size_t tensor, int64_t n_elements) {
  for (int64_t begin = 0; begin < n_elements; begin += simd::kTask_elements)
    tasks_.push_back({tensor, begin, std::min(simd::kTask_elements, n_elements - begin)});
}

namespace {

const void* element(const void* base, DType type, int64_t index) {
  return static_cast<const std::byte*>(base) + index * static_cast<int64_t>(size_of(type));
}

}  // namespace

template <class Work>
void CpuMath::for_tasks(const Work& work) {
  const auto run = [&](int64_t i) { work(tasks_[static_cast<size_t>(i)]); };
  // A reference: a std::function of the closures here would be allocated in each call.
  pool_.parallel_for(static_cast<int64_t>(tasks_.size()), std::cref(run));
}

void CpuMath::update(std::span<const simd::UpdateArgs> tensors) {
  tasks_.clear();
  for (size_t t = 0; t < tensors.size(); ++t)
    split(t, tensors[t].n);
  for_tasks([&](const Task& task) {
    simd::update(simd::part_of(tensors[task.tensor], task.begin, task.n));
  });
}

void CpuMath::accumulate(float* sum, const void* g, DType type, int64_t n, bool first) {
  tasks_.clear();
  split(0, n);
  for_tasks([&](const Task& task) {
    const void* part = element(g, type, task.begin);
    if (first)
      simd::accumulate_first(sum + task.begin, part, type, task.n);
    else
      simd::accumulate(sum + task.begin, part, type, task.n);
  });
}

void CpuMath::square_sum_chunks(const void* g, DType type, int64_t n, double* sums) {
  static_assert(simd::kTask_elements % simd::kNormChunk == 0,
                "a task holds whole chunks of the norm");
  tasks_.clear();
  split(0, n);
  for_tasks([&](const Task& task) {
    simd::square_sum_chunks(element(g, type, task.begin), type, task.n,
                            sums + task.begin / simd::kNormChunk);
  });
}

void CpuMath::square_sum(const void* g, DType type, int64_t n, double* total) {
  chunk_sums_.resize(static_cast<size_t>(simd::norm_chunks(n)));
  square_sum_chunks(g, type, n, chunk_sums_.data());
  *total = simd::sum_in_order(chunk_sums_.data(), simd::norm_chunks(n));
}

void CpuMath::zero(void* to, int64_t n_bytes) {
  std::memset(to, 0, static_cast<size_t>(n_bytes));
}

}  // namespace ferry
