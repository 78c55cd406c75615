#pragma once
// Works in a thread of its own so that nothing waits. Of jobs that wait only the latest is done,
// and of results only the latest job's arrive.
//
//   LatestWorker worker(this);
//   worker.ask([path] { return read_all(path); },
//              [this](Rows rows, const QString& trouble) { show(rows, trouble); });
//
// A job with several results posts itself:
//
//   worker.post([=](const LatestWorker::Turn& turn) {
//     turn.deliver([=, result = first(question)] { show(result); });
//     if (!turn.is_overtaken()) turn.deliver([=, result = second(question)] { show(result); });
//   });

#include <QObject>
#include <QString>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

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

  /** `receiver` outlives it, or is its owner; all calls come from its thread. */
  explicit LatestWorker(QObject* receiver);
  /** Never waits for a job: one that is at work is left to itself and its result dropped. */
  ~LatestWorker();
  LatestWorker(const LatestWorker&) = delete;
  LatestWorker& operator=(const LatestWorker&) = delete;

  /** `work` runs in the thread, takes nothing or its Turn, and touches nothing that it does not
   * own. `use` gets its result in the receiver's thread, and why there is none: then the result is
   * an empty one. */
  template <typename Work, typename Use>
  void ask(Work work, Use use) {
    post([this, work = std::move(work), use = std::move(use)](const Turn& turn) mutable {
      auto result = std::make_shared<decltype(result_of(work, turn))>();
      QString trouble;
      try {
        *result = result_of(work, turn);
      } catch (const std::exception& error) {
        trouble = QString::fromUtf8(error.what());
      }
      // A delivery finds this worker alive: its end overtakes all.
      turn.deliver([this, result, trouble, use = std::move(use)]() mutable {
        is_busy_ = false;
        use(std::move(*result), trouble);
      });
    });
    is_busy_ = true;
  }
  /** The job may not throw, and touches nothing that it does not own. */
  void post(std::function<void(const Turn&)> job);
  /** Results of jobs before this do not arrive. */
  void forget();
  /** The last question has no result yet, and one is wanted. */
  bool is_busy() const { return is_busy_; }

 private:
  template <typename Work>
  static auto result_of(Work& work, const Turn& turn) {
    if constexpr (std::is_invocable_v<Work&, const Turn&>)
      return work(turn);
    else
      return work();
  }
  static void work(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::thread thread_;
  bool is_busy_ = false;
};

}  // namespace ferry::gui
