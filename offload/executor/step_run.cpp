#include "offload/executor/step_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "offload/executor/executor.h"
#include "src/base/error.h"

namespace ferry {

StepRun::StepRun(Executor& executor,
                 const ReadyList& list,
                 bool trains,
                 std::function<bool()> drops)
    : executor_(executor),
      list_(list),
      trains_(trains),
      drops_(std::move(drops)),
      start_(std::chrono::steady_clock::now()) {
  FERRY_CHECK(!executor_.has_run_, "a step is in progress");
  if (trains_ && !executor_.await_dropped(*this))
    state_ = State::dropped;
  else
    executor_.start(list_, trains_);
  executor_.has_run_ = true;
}

StepRun::~StepRun() {
  abandon();
  executor_.has_run_ = false;
}

void StepRun::abandon() noexcept {
  if (state_ != State::open) return;
  if (may_drop_) try {
      return drop();
    } catch (...) {  // the device has failed, and says so to whoever goes on with it
      return;
    }
  state_ = State::failed;
  executor_.device_.fail(std::make_exception_ptr(Error(Fault::usage, "executor.step",
                                                       "a step was left after its first update",
                                                       "begin anew from the last checkpoint")));
}

void StepRun::drop() {
  state_ = State::failed;  // unless the GPU's queues run empty
  if (trains_)
    executor_.drop(list_.actions);
  else
    executor_.forget_own_slots();
  executor_.await_gpu(list_.actions);
  state_ = State::dropped;
}

const Action* StepRun::next() {
  if (state_ == State::open) {
    state_ = State::failed;
    if (!advance()) {
      drop();
      return nullptr;
    }
    state_ = State::open;
  }
  return state_ == State::open && at_ < list_.actions.size() ? &list_.actions[at_] : nullptr;
}

bool StepRun::advance() {
  for (; at_ < list_.actions.size(); note_submitted()) {
    const Action& action = list_.actions[at_];
    if (!std::exchange(is_asked_, true)) {
      if (may_drop_ && drops_) {
        stay_near();
        if (!goes_on()) return false;
      }
      if (!await_saved()) return false;
    }
    if (is_pass(action.verb)) return true;
    may_drop_ = may_drop_ && action.verb != Verb::update;
    executor_.submit(list_, at_);
    if (action.verb != Verb::decide) continue;
    // The one host synchronisation of a step of seconds: what follows needs the decision.
    executor_.wait_for(list_.items[at_].ended, list_.actions);
    may_drop_ = false;
    executor_.measure_run_ahead(std::chrono::steady_clock::now() - start_ - waited_for_disk_);
  }
  return true;
}

void StepRun::note_submitted() {
  if (list_.actions[at_].queue == QueueId::compute) executor_.compute_actions_.push_back(at_);
  is_asked_ = false;
  ++at_;
}

void StepRun::submit(ComputeWork& work) {
  FERRY_CHECK(next(), "no pass is left");
  executor_.submit_pass(list_, at_, work);
  note_submitted();
}

void StepRun::submit_all(ComputeWork& work) {
  while (next())
    submit(work);
}

std::optional<EnteredPass> StepRun::enter(Verb verb, int block, int micro) {
  const Action* pass = next();
  if (state_ == State::dropped) return std::nullopt;
  const Action asked = {.verb = verb, .queue = QueueId::compute, .block = block, .micro = micro};
  if (!pass || pass->verb != verb || pass->block != block || pass->micro != micro)
    throw Error(Fault::usage, "executor.step",
                fmt::format("{} was entered where {} comes next", describe(asked, executor_.shape_),
                            pass ? describe(*pass, executor_.shape_) : "no pass"),
                "enter the passes in the order of StepRun::next()");
  state_ = State::failed;
  executor_.open_pass(list_, at_);
  if (!wait(executor_.turn_, list_.actions)) {
    drop();
    return std::nullopt;
  }
  state_ = State::open;
  return EnteredPass(*this);
}

std::optional<StepOutcome> StepRun::finish() {
  if (const Action* pass = next())
    throw Error(Fault::usage, "executor.step",
                fmt::format("{} was not run", describe(*pass, executor_.shape_)),
                "run every pass of StepRun::next() before finish()");
  if (state_ == State::failed) executor_.device_.drain();  // throws the failure
  if (state_ != State::open) return std::nullopt;
  state_ = State::failed;
  if (!trains_)
    executor_.finish_evaluation(list_);
  else if (!executor_.overlap_)
    executor_.await_updates();
  state_ = State::finished;
  return executor_.outcome_;
}

bool StepRun::wait(EventId event, const StepList& list) {
  std::function<bool()> goes;
  if (drops_ && may_drop_) goes = [this] { return goes_on(); };
  return executor_.wait_while(event, list, goes);
}

void StepRun::stay_near() {
  const std::vector<size_t>& ahead = executor_.compute_actions_;
  const size_t n_most = executor_.hooks_.run_ahead.value_or(executor_.run_ahead_);
  if (ahead.size() >= n_most)
    executor_.wait_for(list_.items[ahead[ahead.size() - n_most]].ended, list_.actions);
}

/** Waits for a checkpoint that must have a block's bytes before an update changes them. An action
 * that needs such an update is not submitted before, because a pause would wait for the disk, too.
 * The decision waits in the same way for the blocks that live on the GPU, whose updates follow it
 * there. A stream of the GPU never waits for a checkpoint, because streams may share a channel of
 * the driver: the checkpoint's own copies would then wait behind that stream for ever. */
bool StepRun::await_saved() {
  if (!executor_.is_saving()) return true;
  const auto start = std::chrono::steady_clock::now();
  const bool has_all =
      std::ranges::all_of(executor_.saved_before(list_.actions[at_]),
                          [&](EventId saved) { return wait(saved, list_.actions); });
  waited_for_disk_ += std::chrono::steady_clock::now() - start;
  return has_all;
}

EnteredPass::EnteredPass(StepRun& run) : run_(&run), n_exceptions_(std::uncaught_exceptions()) {}

EnteredPass::~EnteredPass() {
  if (!run_) return;
  try {
    if (std::uncaught_exceptions() > n_exceptions_)
      run_->abandon();
    else
      leave();
  } catch (...) {  // the step's next wait throws it
  }
}

const Action& EnteredPass::action() const {
  return run_->list_.actions[run_->at_];
}

const PassMemory& EnteredPass::memory() const {
  return run_->list_.items[run_->at_].memory;
}

void EnteredPass::leave() {
  StepRun& run = *std::exchange(run_, nullptr);
  run.executor_.close_pass(run.list_, run.at_);
  run.note_submitted();
}

}  // namespace ferry
