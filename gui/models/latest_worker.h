#pragma once
// Works in a thread of its own so that nothing waits. Of jobs that wait only the latest is done,
// and of results only the latest job's arrive.
//
//   LatestWorker worker(this);
//   worker.post([=](const LatestWorker::Turn& turn) {
//     auto result = slow(question);
//     if (turn.is_overtaken()) return;
//     turn.deliver([=] { show(result); });  // in the receiver's thread
//   });

#include <QObject>
#include <functional>
#include <memory>
#include <thread>

namespace ferry::gui {

class LatestWorker {
  struct State;

 public:
  /** A job's side of the worker. */
  class Turn {
   public:
    /** Nobody waits for this job's result any more. */
    bool is_overtaken() const;
    /** Calls `done` in the receiver's thread, unless the job is overtaken by then or the receiver
     * is gone. */
    void deliver(std::function<void()> done) const;

   private:
    friend class LatestWorker;
    std::shared_ptr<State> state_;
    uint64_t number_ = 0;
  };

  /** `receiver` outlives it, or is its owner. */
  explicit LatestWorker(QObject* receiver);
  /** Never waits for a job: one that is at work is left to itself and its result dropped. */
  ~LatestWorker();
  LatestWorker(const LatestWorker&) = delete;
  LatestWorker& operator=(const LatestWorker&) = delete;

  /** The job may not throw, and touches nothing that it does not own. */
  void post(std::function<void(const Turn&)> job);
  /** Results of jobs before this do not arrive. */
  void forget();

 private:
  static void work(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace ferry::gui
