#pragma once
// A step in progress: a place in its list. Whoever takes the step goes from pass to pass, and the
// executor moves all bytes in between.
//
//   StepRun run = executor.begin(n_micro, rule);
//   while (const Action* pass = run.next()) run.submit(work);  // or enter() and leave()
//   const auto outcome = run.finish();

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "offload/device/device.h"
#include "offload/executor/compute_work.h"
#include "offload/executor/update_rule.h"

namespace ferry {

class Executor;
struct ReadyList;
class StepRun;

/** A pass whose layer operations the caller does itself, in its own thread: the pass's bytes are
 * there while this lives. On CUDA they run on the device's compute stream. It ends with leave(), or
 * with its scope; a scope that an exception ends leaves the pass undone, and its step is dropped.
 */
class EnteredPass {
 public:
  ~EnteredPass();
  EnteredPass(EnteredPass&& other) noexcept
      : run_(std::exchange(other.run_, nullptr)), n_exceptions_(other.n_exceptions_) {}
  EnteredPass& operator=(EnteredPass&&) = delete;
  const Action& action() const;
  const PassMemory& memory() const;
  void leave();

 private:
  friend class StepRun;
  explicit EnteredPass(StepRun& run);
  StepRun* run_;  ///< null once it was left
  int n_exceptions_;
};

/** One at a time of an executor, which outlives it. The thread that steps calls all functions. A
 * run that ends before finish() leaves nothing behind, as a dropped step does; where its updates
 * have begun that cannot be, and the device fails. */
class StepRun {
 public:
  ~StepRun();
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  /** The pass that comes next, a forward, recompute or backward of the list; all that stands before
   * the pass has been submitted. Null: no pass is left, or the step was dropped. */
  const Action* next();
  /** Has the compute queue run the layer operations of next(), once its bytes are there. */
  void submit(ComputeWork& work);
  /** The same of all passes that are left. */
  void submit_all(ComputeWork& work);
  /** Begins the pass in the caller's thread, which waits until the bytes are there; nothing: the
   * step was dropped. Throws Error(usage) where the pass is not next(). */
  std::optional<EnteredPass> enter(Verb pass, int block, int micro);
  /** Submits what follows the last pass. Nothing: the step was dropped. Throws Error(usage) where a
   * pass is left. */
  std::optional<StepOutcome> finish();

 private:
  friend class EnteredPass;
  friend class Executor;
  enum class State : uint8_t { open, dropped, finished, failed };

  /** `drops` may be empty. */
  StepRun(Executor& executor, const ReadyList& list, bool trains, std::function<bool()> drops);
  /** False: the step is to be dropped. The only place that asks, once before each action and again
   * and again while the host waits. */
  bool goes_on() const { return !may_drop_ || !drops_ || !drops_(); }
  /** Submits the actions before the next pass; true: there is a pass, or the end of the list. */
  bool advance();
  /** The action has been submitted. */
  void note_submitted();
  /** Waits for the event, as long as the step goes on. A watchdog names what is unfinished of the
   * list. */
  bool wait(EventId event, const StepList& list);
  /** A step that shall be dropped must not have minutes of work before it on the GPU; one of a
   * second or two is never waited for. */
  void stay_near();
  bool await_saved();
  void drop();
  /** Drops the step where that can still be. */
  void abandon() noexcept;

  Executor& executor_;
  const ReadyList& list_;
  bool trains_;  ///< else it evaluates
  std::function<bool()> drops_;
  State state_ = State::open;
  bool may_drop_ = true;   ///< no update has been submitted
  bool is_asked_ = false;  ///< of the action at at_
  size_t at_ = 0;          ///< the first action that was not submitted
  std::chrono::steady_clock::time_point start_;
  std::chrono::duration<double> waited_for_disk_{};
};

}  // namespace ferry
