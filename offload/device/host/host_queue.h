#pragma once
// A queue of host work: one thread that runs it in order. Work waits inside itself for an event of
// the GPU or a flag of another queue, so the submitting thread never blocks.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace ferry {

class HostQueue {
 public:
  HostQueue() : thread_([this](std::stop_token stop) { run(stop); }) {}
  ~HostQueue() {
    thread_.request_stop();
    changed_.notify_all();
  }
  void push(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  /** Returns when all that was pushed has run. */
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return work_.empty() && !busy_; });
  }

 private:
  void run(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, stop, [&] { return !work_.empty(); });
      if (stop.stop_requested()) return;
      auto work = std::move(work_.front());
      work_.pop_front();
      busy_ = true;
      lock.unlock();
      work();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false;
  std::jthread thread_;
};

}  // namespace ferry
