#pragma once
// The CPU workers that update parameters. oneTBB's arenas, one on each NUMA node that the process
// may use, or plain threads where they must run beside oneTBB's, or where a thread sanitizer must
// see every lock (oneTBB is not instrumented). parallel_for returns when all tasks have run and
// rethrows the first throw.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ferry {

/** Workers of each NUMA node, in the order in which they share out tasks. */
using NodeWorkers = std::vector<int>;

/** n_workers spread over nodes with these many cores, in proportion; a node may get none. */
NodeWorkers spread_workers(int n_workers, const std::vector<int>& n_cores_of_node);

class WorkerPool {
 public:
  virtual ~WorkerPool() = default;
  virtual int n_workers() const = 0;
  virtual int n_nodes() const { return 1; }
  /** Runs task(0) .. task(n_tasks - 1), in any order, on up to n_workers threads (the caller's
   * among them). On several nodes each node runs the share that first_task() says, whoever calls:
   * over one segment, the same node always has the same part. */
  virtual void parallel_for(int64_t n_tasks, const std::function<void(int64_t)>& task) = 0;
};

/** Node `node` of those that share n_tasks runs tasks from this one to the next node's; of
 * `node` = their number, the end. */
int64_t first_task(const NodeWorkers& workers, size_t node, int64_t n_tasks);

std::unique_ptr<WorkerPool> make_tbb_pool(int n_workers);
std::unique_ptr<WorkerPool> make_thread_pool(int n_workers);

}  // namespace ferry
