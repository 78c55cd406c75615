#pragma once
// Looks into an executor and changes what a run leaves alone, for tests and benchmarks.

#include <chrono>
#include <functional>
#include <string_view>
#include <utility>

#include "offload/executor/executor.h"

namespace ferry {

struct ExecutorProbe {
  /** Limits the unfinished actions of the compute queue, for every step. */
  static void set_run_ahead(Executor& executor, size_t n_actions) {
    executor.hooks_.run_ahead = n_actions;
  }
  /** The number of times that the stepping thread has waited for the device. */
  static int64_t n_host_waits(const Executor& executor) { return executor.hooks_.n_host_waits; }
  /** Called in place of each action's work, which it is given to run. */
  static void set_around(
      Executor& executor,
      std::function<void(const Action&, const std::function<void()>& work)> around) {
    executor.hooks_.around = std::move(around);
  }
  /** Changes the lists before they are used (a planted fault drops waits). */
  static void set_fault(Executor& executor, std::function<void(StepList&)> fault) {
    executor.hooks_.fault = std::move(fault);
  }
  static const StepList& training_list(Executor& executor,
                                       int n_micro,
                                       UpdateOrder order = UpdateOrder::after_decision) {
    return executor.training(n_micro, order, order == UpdateOrder::as_grads_arrive).actions;
  }
  /** Commits what was written through the window, as the state before the next step. */
  static void commit_states(Executor& executor, std::string_view metadata) {
    if (!executor.store_) return;
    executor.window_->finish_writes();
    executor.store_->extents().commit(metadata);
  }
  /** The seconds that the last step's updates of the blocks in host memory take by themselves, with
   * nothing beside them. The updates happen once more, so the states are no run's after it. Runs in
   * the caller's thread, after settle(). */
  static double repeat_host_updates(Executor& executor) {
    const auto start = std::chrono::steady_clock::now();
    for (int b = 0; b < executor.shape_.n_blocks(); ++b) {
      const BlockLayout& its = executor.layout_.block(b);
      if (its.updates_on_host && its.is_trained && its.n_state_pieces == 0)
        executor.apply({.verb = Verb::update, .queue = QueueId::host, .block = b},
                       executor.updates_[executor.current_]);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

}  // namespace ferry
