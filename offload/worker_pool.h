#pragma once
// The CPU workers that update parameters. oneTBB's arena, or plain threads where a thread sanitizer
// must see every lock (oneTBB is not instrumented). parallel_for returns when all tasks have run
// and rethrows the first throw.

#include <cstdint>
#include <functional>
#include <memory>

namespace ferry {

class WorkerPool {
 public:
  virtual ~WorkerPool() = default;
  virtual int n_workers() const = 0;
  /** task(0) .. task(n_tasks - 1), in any order, on up to n_workers threads (the caller's among
   * them). */
  virtual void parallel_for(int64_t n_tasks, const std::function<void(int64_t)>& task) = 0;
};

std::unique_ptr<WorkerPool> make_tbb_pool(int n_workers);
std::unique_ptr<WorkerPool> make_thread_pool(int n_workers);

}  // namespace ferry
