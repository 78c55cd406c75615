// A step's list: submitted in order, waited for where the host must know; dropped and traced.

#include "offload/executor/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "offload/device/profiler_ranges.h"
#include "src/base/error.h"
#include "src/base/process/movement.h"

namespace ferry {
namespace {

constexpr QueueId kGpuQueues[] = {QueueId::compute, QueueId::h2d, QueueId::d2h};

bool is_update(const Action& action) {
  return action.verb == Verb::update;
}

}  // namespace

Action Executor::end_of_update(int b) const {
  const BlockLayout& its = layout_.block(b);
  return {.verb = its.sends_weights ? Verb::send_weights : Verb::update,
          .queue = its.updates_on_host ? QueueId::host
                   : its.sends_weights ? QueueId::d2h
                                       : QueueId::compute,
          .block = b};
}
bool Executor::ends_update(const Action& action) const {
  return action.block >= 0 && action.verb == end_of_update(action.block).verb;
}

Executor::Executor(const StepShape& shape,
                   Device& device,
                   WorkerPool& pool,
                   RunMemory& memory,
                   ComputeWork& work,
                   bool overlap,
                   StateStore* store)
    : shape_(shape),
      device_(device),
      pool_(pool),
      host_math_(pool),
      memory_(memory),
      layout_(memory.layout()),
      work_(work),
      overlap_(overlap),
      watchdog_(watchdog_of_environment()),
      store_(store),
      committed_(device.make_event(QueueId::nvme_write)),
      pinned_(device.make_event(QueueId::save)),
      update_waits_for_save_(shape.blocks.size()),
      save_ended_(device.make_event(QueueId::save)),
      square_sums_(shape.blocks.size()) {
  for (size_t q = 0; q < idle_.size(); ++q)
    idle_[q] = device_.make_event(static_cast<QueueId>(q));
  for (int b = 0; b < shape.n_blocks(); ++b) {
    updated_.push_back(device_.make_event(end_of_update(b).queue));
    saved_.push_back(device_.make_event(QueueId::save));
    sent_.push_back(device_.make_event(QueueId::nvme_write));
    FERRY_CHECK(store_ || layout_.block(b).n_state_pieces == 0, "{} has states in no store",
                block(b).name);
    for (const BorrowedExtent& borrowed : block(b).borrowed)
      FERRY_CHECK(block(borrowed.block).place.grads == block(b).place.grads,
                  "{} and {} share a tensor but not a place of gradients", block(b).name,
                  block(borrowed.block).name);
  }
  if (store_) window_.emplace(shape_, memory_, *store_);
  if (shape.trains) prepare_updates();
  // Blocks are saved in the order in which steps will ask for them: the decision waits for the
  // blocks on the GPU, the updates of the host follow it in this order, and nobody waits for frozen
  // blocks.
  save_order_.resize(updated_.size());
  std::iota(save_order_.begin(), save_order_.end(), 0);
  std::ranges::stable_sort(save_order_, {}, [&](int b) {
    return !shape_.is_trained(b) ? 2 : layout_.block(b).updates_on_host ? 1 : 0;
  });
}

Executor::~Executor() {
  try {
    device_.drain();
  } catch (...) {  // whoever waited for the step has seen it
  }
}

Executor::ReadyList& Executor::training(int n_micro, UpdateOrder order, bool each_decides) {
  auto [at, made] = lists_.try_emplace({n_micro, order, each_decides});
  if (made) {
    StepList list = make_training_list(shape_, layout_, n_micro, order, each_decides);
    if (fault_) fault_(list);
    check_order(list);
    at->second = ready(std::move(list));
  }
  return at->second;
}

void Executor::check_order(const StepList& list) const {
  for (size_t i = 0; i < list.size(); ++i)
    for (int before : list[i].after)
      FERRY_CHECK(static_cast<size_t>(before) < i, "{} waits for {}, a later action",
                  describe(list[i], shape_), describe(list[static_cast<size_t>(before)], shape_));
}

std::vector<EventId> Executor::events_of(const StepList& list) {
  std::vector<EventId> events;
  std::array<size_t, kQueues> n_before{};
  for (const Action& action : list) {
    const auto queue = static_cast<size_t>(action.queue);
    const size_t i = n_before[queue]++;
    if (events_[queue].size() == i) events_[queue].push_back(device_.make_event(action.queue));
    events.push_back(events_[queue][i]);
  }
  return events;
}

std::optional<StepOutcome> Executor::step(int n_micro,
                                          const UpdateRule& rule,
                                          const std::function<bool()>& drops) {
  using Clock = std::chrono::steady_clock;
  // Updates beside a checkpoint wait for the disk, each block's for its own bytes. In the order of
  // need and after the decision they hold up nothing else, and the step can still be dropped.
  const bool each_decides = !rule.steps_ahead.empty();
  const auto order =
      each_decides && !is_saving() ? UpdateOrder::as_grads_arrive : UpdateOrder::after_decision;
  const ReadyList& ready = training(n_micro, order, each_decides);
  const StepList& list = ready.actions;
  if (dropped_ && !await_dropped(drops)) return std::nullopt;
  rule_ = &rule;
  n_micro_ = n_micro;
  current_ = (current_ + 1) % updates_.size();
  memory_.note_new_weights();
  updates_[current_] = {
      .order = order, .each_decides = each_decides, .decision = {.steps = rule.steps_ahead}};
  const auto start = Clock::now();
  if (tracer_) tracer_->begin_step();
  compute_actions_.clear();
  waited_for_disk_ = {};
  bool may_drop = true;
  for (size_t i = 0; i < list.size(); ++i) {
    if (may_drop && drops) {
      stay_near(ready);
      if (drops() || !await_saved(list[i], list, drops)) return drop_step(list);
    }
    may_drop = may_drop && !is_update(list[i]);
    submit(ready, i);
    if (list[i].queue == QueueId::compute) compute_actions_.push_back(i);
    if (list[i].verb != Verb::decide) continue;
    // The one host synchronisation of a step of seconds: what follows needs the decision.
    wait_for(ready.ended[i], list);
    may_drop = false;
    measure_run_ahead(Clock::now() - start - waited_for_disk_);
  }
  if (!overlap_) await_updates();
  return outcome_;
}

/** A step that shall be dropped must not have minutes of work before it on the GPU; one of a second
 * or two is never waited for. */
void Executor::stay_near(const ReadyList& list) {
  const size_t n_ahead = fixed_run_ahead_.value_or(run_ahead_);
  if (compute_actions_.size() >= n_ahead)
    wait_for(list.ended[compute_actions_[compute_actions_.size() - n_ahead]], list.actions);
}

void Executor::measure_run_ahead(std::chrono::duration<double> step) {
  constexpr std::chrono::duration<double> kAhead{2.0};
  const double n = static_cast<double>(compute_actions_.size()) * (kAhead / step);
  run_ahead_ = static_cast<size_t>(std::clamp(n, 2.0, static_cast<double>(kRunAhead_max)));
}

/** Waits for a checkpoint that must have a block's bytes before an update changes them. An action
 * that needs such an update is not submitted before, because a pause would wait for the disk, too.
 * The decision waits in the same way for the blocks that live on the GPU, whose updates follow it
 * there. */
bool Executor::await_saved(const Action& action,
                           const StepList& list,
                           const std::function<bool()>& drops) {
  if (!is_saving()) return true;
  const auto start = std::chrono::steady_clock::now();
  const auto await = [&](int b) {
    return wait_unless(saved_[static_cast<size_t>(b)], list, drops);
  };
  bool has_all = std::ranges::all_of(action.after_update, [&](int b) {
    return !update_waits_for_save_[static_cast<size_t>(b)] || await(b);
  });
  for (int b = 0; b < shape_.n_blocks() && action.verb == Verb::decide && has_all; ++b)
    if (!layout_.block(b).updates_on_host && shape_.is_trained(b)) has_all = await(b);
  waited_for_disk_ += std::chrono::steady_clock::now() - start;
  return has_all;
}

/** The host may still be at work for a step that was dropped, in memory that the next one uses, and
 * before that with updates that wait for a checkpoint. A drive may be, too, with gradients. */
bool Executor::await_dropped(const std::function<bool()>& drops) {
  for (QueueId queue : {QueueId::host, QueueId::nvme_read, QueueId::nvme_write}) {
    const EventId idle = idle_[static_cast<size_t>(queue)];
    device_.record(idle);
    if (!wait_unless(idle, *dropped_, drops)) return false;
  }
  dropped_ = nullptr;
  return true;
}

std::optional<StepOutcome> Executor::drop_step(const StepList& list) {
  dropped_ = &list;
  current_ = (current_ + updates_.size() - 1) % updates_.size();  // the next one is this step again
  await_idle(kGpuQueues, list);
  return std::nullopt;
}

void Executor::await_idle(std::span<const QueueId> queues, const StepList& list) {
  for (QueueId queue : queues)
    device_.record(idle_[static_cast<size_t>(queue)]);
  for (QueueId queue : queues)
    wait_for(idle_[static_cast<size_t>(queue)], list);
}

double Executor::evaluate() {
  const int64_t version = memory_.weights_version();
  const bool fetches = std::exchange(own_slots_version_, version) != version;
  ReadyList& ready_list = evaluation_lists_[fetches];
  if (ready_list.actions.empty())
    ready_list = ready(make_evaluation_list(shape_, layout_, fetches));
  const StepList& list = ready_list.actions;
  n_micro_ = 1;
  StepTracer* const tracer = std::exchange(tracer_, nullptr);  // it traces steps
  for (size_t i = 0; i < list.size(); ++i)
    submit(ready_list, i);
  tracer_ = tracer;
  wait_for(ready_list.ended.back(), list);
  return *at<float>({.region = layout_.step_sums_on_host,
                     .offset = shape_.n_blocks() * static_cast<int64_t>(sizeof(double))});
}

void Executor::await_updates() {
  for (EventId update : updated_)
    wait_for(update, {});
  wait_for(committed_, {});
}

void Executor::commit_states(std::string_view metadata) {
  if (!store_) return;
  window_->finish_writes();
  store_->extents().commit(metadata);
}

void Executor::settle() {
  await_updates();
  device_.drain();
}

void Executor::settle_gpu() {
  // The slots of a drive lie in that memory where the device's is the host's own.
  if (store_ && shape_.computes_on_host) await_updates();
  await_idle(kGpuQueues, {});  // updates of blocks that live there among them
}

void Executor::submit(const ReadyList& list, size_t i) {
  note_movement();  // a CPU does the work of the action before in there
  const Action& action = list.actions[i];
  for (int before : action.after)
    device_.wait(action.queue, list.ended[static_cast<size_t>(before)]);
  for (int b : action.after_update)
    device_.wait(action.queue,
                 (layout_.block(b).reads_weights ? sent_ : updated_)[static_cast<size_t>(b)]);
  if (action.after_commit) device_.wait(action.queue, committed_);
  if (action.verb == Verb::commit) device_.wait(action.queue, pinned_);
  if (is_update(action)) {
    const bool waits = is_saving();
    update_waits_for_save_[static_cast<size_t>(action.block)] = waits;
    if (waits) device_.wait(action.queue, saved_[static_cast<size_t>(action.block)]);
  }
  if (tracer_) tracer_->begin(action);
  auto work = [this, &action, memory = &list.memories[i], updates = &updates_[current_]] {
    run(action, *memory, *updates);
  };
  if (profiler_listens())
    device_.submit(action.queue, [work, name = describe(action, shape_)] {
      const ProfilerRange range(name.c_str());
      work();
    });
  else if (around_)
    device_.submit(action.queue, [this, work, &action] { around_(action, work); });
  else
    device_.submit(action.queue, work);
  if (tracer_) tracer_->end(action);
  device_.record(list.ended[i]);
  if (ends_update(action)) device_.record(updated_[static_cast<size_t>(action.block)]);
  if (action.verb == Verb::send_states) device_.record(sent_[static_cast<size_t>(action.block)]);
  if (action.verb == Verb::commit) device_.record(committed_);
}

}  // namespace ferry
