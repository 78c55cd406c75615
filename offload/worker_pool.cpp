#include "offload/worker_pool.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace ferry {
namespace {

class TbbPool final : public WorkerPool {
 public:
  explicit TbbPool(int n_workers) : n_workers_(n_workers), arena_(n_workers) {
    using oneapi::tbb::global_control;
    constexpr auto kLimit = global_control::max_allowed_parallelism;
    // More workers than cores are only had for the asking.
    if (static_cast<size_t>(n_workers) > global_control::active_value(kLimit))
      more_than_cores_.emplace(kLimit, static_cast<size_t>(n_workers));
  }
  int n_workers() const override { return n_workers_; }
  void parallel_for(int64_t n_tasks, const std::function<void(int64_t)>& task) override {
    arena_.execute(
        [&] { oneapi::tbb::parallel_for(int64_t{0}, n_tasks, [&](int64_t i) { task(i); }); });
  }

 private:
  int n_workers_;
  std::optional<oneapi::tbb::global_control> more_than_cores_;
  oneapi::tbb::task_arena arena_;
};

/** Starts its threads anew for each call: simple enough to be seen through by a sanitizer. */
class ThreadPool final : public WorkerPool {
 public:
  explicit ThreadPool(int n_workers) : n_workers_(n_workers) {}
  int n_workers() const override { return n_workers_; }
  void parallel_for(int64_t n_tasks, const std::function<void(int64_t)>& task) override {
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::exception_ptr first;
    auto work = [&] {
      for (int64_t i; (i = next.fetch_add(1)) < n_tasks;) {
        try {
          task(i);
        } catch (...) {
          std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
      }
    };
    {
      std::vector<std::jthread> threads;
      for (int w = 1; w < n_workers_ && w < n_tasks; ++w)
        threads.emplace_back(work);
      work();
    }
    if (first) std::rethrow_exception(first);
  }

 private:
  int n_workers_;
};

}  // namespace

std::unique_ptr<WorkerPool> make_tbb_pool(int n_workers) {
  return std::make_unique<TbbPool>(n_workers);
}
std::unique_ptr<WorkerPool> make_thread_pool(int n_workers) {
  return std::make_unique<ThreadPool>(n_workers);
}

}  // namespace ferry
