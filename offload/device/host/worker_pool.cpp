#include "offload/device/host/worker_pool.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

namespace ferry {
namespace {

using oneapi::tbb::task_arena;

/** Lets oneTBB start more workers than there are cores: only had for the asking. */
class MoreThanCores {
 public:
  explicit MoreThanCores(int n_workers) {
    using oneapi::tbb::global_control;
    constexpr auto kLimit = global_control::max_allowed_parallelism;
    if (static_cast<size_t>(n_workers) > global_control::active_value(kLimit))
      control_.emplace(kLimit, static_cast<size_t>(n_workers));
  }

 private:
  std::optional<oneapi::tbb::global_control> control_;
};

class TbbPool final : public WorkerPool {
 public:
  explicit TbbPool(int n_workers)
      : n_workers_(n_workers), more_than_cores_(n_workers), arena_(n_workers) {}
  int n_workers() const override { return n_workers_; }
  void parallel_for(int64_t n_tasks, const std::function<void(int64_t)>& task) override {
    arena_.execute(
        [&] { oneapi::tbb::parallel_for(int64_t{0}, n_tasks, [&](int64_t i) { task(i); }); });
  }

 private:
  int n_workers_;
  MoreThanCores more_than_cores_;
  task_arena arena_;
};

/** An arena for each node, whose threads stay on its cores. */
class NumaPool final : public WorkerPool {
 public:
  NumaPool(const std::vector<oneapi::tbb::numa_node_id>& nodes, const NodeWorkers& workers)
      : workers_(workers), more_than_cores_(n_workers()) {
    for (size_t k = 0; k < nodes.size(); ++k) {
      // The caller works for each node in turn, for the first from the start.
      const unsigned n_reserved = k == 0 ? 1 : 0;
      arenas_.push_back(std::make_unique<task_arena>(
          task_arena::constraints().set_numa_id(nodes[k]).set_max_concurrency(workers[k]),
          n_reserved));
    }
  }
  int n_workers() const override { return std::accumulate(workers_.begin(), workers_.end(), 0); }
  int n_nodes() const override { return static_cast<int>(arenas_.size()); }
  void parallel_for(int64_t n_tasks, const std::function<void(int64_t)>& task) override {
    std::deque<oneapi::tbb::task_group> groups(arenas_.size());  // they cannot be moved
    for (size_t k = 0; k < arenas_.size(); ++k) {
      const int64_t begin = first_task(workers_, k, n_tasks);
      const int64_t end = first_task(workers_, k + 1, n_tasks);
      if (begin == end) continue;
      arenas_[k]->execute([&, begin, end] {
        groups[k].run([&task, begin, end] {
          oneapi::tbb::parallel_for(begin, end, [&](int64_t i) { task(i); });
        });
      });
    }
    std::exception_ptr first;
    for (size_t k = 0; k < arenas_.size(); ++k) {
      try {
        arenas_[k]->execute([&] { groups[k].wait(); });
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    if (first) std::rethrow_exception(first);
  }

 private:
  NodeWorkers workers_;
  MoreThanCores more_than_cores_;
  std::vector<std::unique_ptr<task_arena>> arenas_;
};

/** Own threads that last as long as the pool: the system shares the cores among them and other
 * threads, while an arena of oneTBB gets no thread as long as other arenas have them all. */
class ThreadPool final : public WorkerPool {
 public:
  explicit ThreadPool(int n_workers) : n_workers_(n_workers) {
    for (int w = 1; w < n_workers; ++w)  // the caller is one, too
      threads_.emplace_back([this] { serve(); });
  }
  ~ThreadPool() override {
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
    }
    has_work_.notify_all();
  }
  int n_workers() const override { return n_workers_; }
  void parallel_for(int64_t n_tasks, const std::function<void(int64_t)>& task) override {
    Call call{.task = task, .n_tasks = n_tasks};
    std::unique_lock lock(mutex_);
    if (n_tasks > 1) {
      calls_.push_back(&call);
      has_work_.notify_all();
    }
    run_tasks(call, lock);
    std::erase(calls_, &call);
    has_ended_.wait(lock, [&] { return call.n_running == 0; });
    if (call.first) std::rethrow_exception(call.first);
  }

 private:
  /** A call of parallel_for. The mutex guards it. */
  struct Call {
    const std::function<void(int64_t)>& task;
    int64_t n_tasks = 0;
    int64_t next = 0;  ///< the first task that nobody has taken
    int n_running = 0;
    std::exception_ptr first = nullptr;
  };

  /** Runs tasks that nobody has taken until there are none. */
  void run_tasks(Call& call, std::unique_lock<std::mutex>& lock) {
    while (call.next < call.n_tasks) {
      const int64_t i = call.next++;
      ++call.n_running;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        call.task(i);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      if (!call.first) call.first = thrown;
      if (--call.n_running == 0) has_ended_.notify_all();
    }
  }
  void serve() {
    std::unique_lock lock(mutex_);
    const auto open_call = [this] {
      return std::ranges::find_if(calls_, [](const Call* one) { return one->next < one->n_tasks; });
    };
    for (;;) {
      has_work_.wait(lock, [&] { return ends_ || open_call() != calls_.end(); });
      if (ends_) return;
      run_tasks(**open_call(), lock);
    }
  }

  int n_workers_;
  std::mutex mutex_;
  std::condition_variable has_work_, has_ended_;
  std::vector<Call*> calls_;  ///< those whose tasks threads may take
  bool ends_ = false;
  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace

NodeWorkers spread_workers(int n_workers, const std::vector<int>& n_cores_of_node) {
  const int64_t n_cores = std::accumulate(n_cores_of_node.begin(), n_cores_of_node.end(), 0);
  NodeWorkers workers;
  int64_t before = 0;
  for (const int n : n_cores_of_node) {
    const int64_t end = before + n;
    workers.push_back(static_cast<int>(n_workers * end / n_cores - n_workers * before / n_cores));
    before = end;
  }
  return workers;
}

int64_t first_task(const NodeWorkers& workers, size_t node, int64_t n_tasks) {
  const auto until = workers.begin() + static_cast<std::ptrdiff_t>(node);
  const int64_t before = std::accumulate(workers.begin(), until, int64_t{0});
  return n_tasks * before / std::accumulate(until, workers.end(), before);
}

std::unique_ptr<WorkerPool> make_tbb_pool(int n_workers) {
#ifdef __SANITIZE_ADDRESS__
  // oneTBB loads its library for NUMA in a way for which that sanitizer ends the process.
  return std::make_unique<TbbPool>(n_workers);
#else
  // One entry, for the whole machine, where oneTBB's library for NUMA is not there.
  std::vector<oneapi::tbb::numa_node_id> nodes = oneapi::tbb::info::numa_nodes();
  std::vector<int> n_cores;
  for (const oneapi::tbb::numa_node_id node : nodes)
    n_cores.push_back(oneapi::tbb::info::default_concurrency(node));
  NodeWorkers workers = spread_workers(n_workers, n_cores);
  for (size_t k = nodes.size(); k-- > 0;)
    if (workers[k] == 0) {
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(k));
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(k));
    }
  if (nodes.size() < 2) return std::make_unique<TbbPool>(n_workers);
  return std::make_unique<NumaPool>(nodes, workers);
#endif
}

std::unique_ptr<WorkerPool> make_thread_pool(int n_workers) {
  return std::make_unique<ThreadPool>(n_workers);
}

}  // namespace ferry
