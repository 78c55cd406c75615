#pragma once
// Keeps the first failure of a step, wherever it happened. A failed fence makes queued work drain
// without effect; the thread that waits for the step rethrows. Any thread may call any function.

#include <atomic>
#include <exception>
#include <mutex>

namespace ferry {

class StepFence {
 public:
  /** Keeps `failure` if it is the first. */
  void fail(std::exception_ptr failure) noexcept {
    std::lock_guard lock(mutex_);
    if (!first_) first_ = std::move(failure);
    failed_.store(true, std::memory_order_release);
  }
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  /** Throws the first failure, if there was one. */
  void rethrow() {
    if (!failed()) return;
    std::lock_guard lock(mutex_);
    std::rethrow_exception(first_);
  }
  /** Runs `work` unless the fence has failed; a throw fails it. */
  template <class Work>
  void guard(Work&& work) noexcept {
    if (failed()) return;
    try {
      work();
    } catch (...) {
      fail(std::current_exception());
    }
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
  std::atomic<bool> failed_{false};
};

}  // namespace ferry
