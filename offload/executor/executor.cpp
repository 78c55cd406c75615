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
                   bool overlap,
                   StateStore* store,
                   RankLink* link)
    : shape_(shape),
      device_(device),
      pool_(pool),
      host_math_(pool),
      memory_(memory),
      layout_(memory.layout()),
      overlap_(overlap),
      watchdog_(watchdog_of_environment()),
      store_(store),
      link_(link),
      committed_(device.make_event(QueueId::nvme_write)),
      pinned_(device.make_event(QueueId::save)),
      update_waits_for_save_(shape.blocks.size()),
      save_ended_(device.make_event(QueueId::save)),
      square_sums_(shape.blocks.size()),
      turn_(device.make_event(QueueId::compute)) {
  FERRY_CHECK(link_ || !shape.has_peers(), "{} ranks without a link", shape.ranks.world);
  for (size_t q = 0; q < idle_.size(); ++q)
    idle_[q] = device_.make_event(static_cast<QueueId>(q));
  for (int b = 0; b < shape.n_blocks(); ++b) {
    updated_.push_back(device_.make_event(end_of_update(b).queue));
    saved_.push_back(device_.make_event(QueueId::save));
    sent_.push_back(device_.make_event(QueueId::nvme_write));
    FERRY_CHECK(store_ || layout_.block(b).n_state_pieces == 0, "{} has states in no store",
                block(b).name);
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

ReadyList& Executor::training(int n_micro, UpdateOrder order, bool each_decides) {
  auto [at, made] = lists_.try_emplace({n_micro, order, each_decides});
  if (made) {
    StepList list = make_training_list(shape_, layout_, n_micro, order, each_decides);
    if (hooks_.fault) hooks_.fault(list);
    check_order(list);
    at->second = ready(std::move(list));
    at->second.order = order;
    at->second.each_decides = each_decides;
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

StepRun Executor::begin(int n_micro, UpdateRule rule, std::function<bool()> drops) {
  // Updates beside a checkpoint wait for the disk, each block's for its own bytes. In the order of
  // need and after the decision they hold up nothing else, and the step can still be dropped.
  const bool each_decides = !rule.steps_ahead.empty();
  const bool is_early = each_decides && !is_saving() && !shape_.has_peers();
  const auto order = is_early ? UpdateOrder::as_grads_arrive : UpdateOrder::after_decision;
  rule_ = std::move(rule);
  n_micro_ = n_micro;
  return {*this, training(n_micro, order, each_decides), /*trains=*/true, std::move(drops)};
}

StepRun Executor::begin_evaluation(int n_micro) {
  n_evaluated_ = n_micro;
  const int64_t version = memory_.weights_version();
  const bool fetches = std::exchange(own_slots_version_, version) != version;
  ReadyList& list = evaluation_lists_[{fetches, n_micro}];
  if (list.actions.empty()) list = ready(make_evaluation_list(shape_, layout_, fetches, n_micro));
  return {*this, list, /*trains=*/false, {}};
}

std::optional<StepOutcome> Executor::step(int n_micro,
                                          UpdateRule rule,
                                          ComputeWork& work,
                                          std::function<bool()> drops) {
  StepRun run = begin(n_micro, std::move(rule), std::move(drops));
  run.submit_all(work);
  return run.finish();
}

std::vector<double> Executor::evaluate(ComputeWork& work, int n_micro) {
  StepRun run = begin_evaluation(n_micro);
  run.submit_all(work);
  return run.finish().value().losses;
}

void Executor::start(const ReadyList& list, bool trains) {
  compute_actions_.clear();
  is_traced_ = trains && tracer_;
  if (!trains) return;
  current_ = (current_ + 1) % updates_.size();
  memory_.note_new_weights();
  Updates& updates = updates_[current_];
  updates.order = list.order;
  updates.each_decides = list.each_decides;
  updates.decision.skip = false;
  updates.decision.steps = rule_.steps_ahead;
  if (is_traced_) tracer_->begin_step();
}

void Executor::finish_evaluation(const ReadyList& list) {
  wait_for(list.items.back().ended, list.actions);
  outcome_ = {};
  const int n_losses = shape_.n_losses();
  std::vector<double> losses(
      static_cast<size_t>(n_evaluated_ * n_losses));  // by micro-batch and part
  const auto index_of = [&](int micro, int part) {
    return static_cast<size_t>(micro * n_losses + part);
  };
  for (int b = 0; b < shape_.n_blocks(); ++b) {
    if (!block(b).has_loss || !shape_.runs(b)) continue;
    const int part = shape_.loss_index(b);
    for (int micro = 0; micro < n_evaluated_; ++micro) {
      const int64_t slot = loss_slot(shape_, micro, part);
      losses[index_of(micro, part)] =
          static_cast<double>(*at<float>({.region = layout_.step_sums_on_host,
                                          .offset = slot * static_cast<int64_t>(sizeof(double))}));
    }
  }
  std::vector<std::vector<double>> all;  // by rank
  if (shape_.deals_blocks()) all = link_->gather(losses);
  for (int micro = 0; micro < n_evaluated_; ++micro) {
    double& loss = outcome_.losses.emplace_back();
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      if (!block(b).has_loss) continue;
      const size_t index = index_of(micro, shape_.loss_index(b));
      const int rank = shape_.ranks.rank_at(block(b).stage, shape_.ranks.replica());
      loss += all.empty() ? losses[index] : all[static_cast<size_t>(rank)][index];
    }
    outcome_.loss += loss;
  }
}

void Executor::measure_run_ahead(std::chrono::duration<double> step) {
  constexpr std::chrono::duration<double> kAhead{2.0};
  const double n = static_cast<double>(compute_actions_.size()) * (kAhead / step);
  run_ahead_ = static_cast<size_t>(std::clamp(n, 2.0, static_cast<double>(kRunAhead_max)));
}

std::vector<EventId> Executor::saved_before(const Action& action) const {
  std::vector<EventId> events;
  for (int b : action.after_update)
    if (update_waits_for_save_[b]) events.push_back(saved_[b]);
  for (int b = 0; b < shape_.n_blocks() && action.verb == Verb::decide; ++b)
    if (!layout_.block(b).updates_on_host && shape_.is_trained(b)) events.push_back(saved_[b]);
  return events;
}

/** The host may still be at work for a step that was dropped, in memory that the next one uses, and
 * before that with updates that wait for a checkpoint. A drive may be, too, with gradients. */
bool Executor::await_dropped(StepRun& run) {
  if (!dropped_) return true;
  for (QueueId queue : {QueueId::host, QueueId::nvme_read, QueueId::nvme_write}) {
    const EventId idle = idle_[queue];
    device_.record(idle);
    if (!run.wait(idle, *dropped_)) return false;
  }
  dropped_ = nullptr;
  return true;
}

void Executor::drop(const StepList& list) {
  dropped_ = &list;
  current_ = (current_ + updates_.size() - 1) % updates_.size();  // the next one is this step again
}

void Executor::await_gpu(const StepList& list) {
  for (QueueId queue : kGpuQueues)
    device_.record(idle_[queue]);
  for (QueueId queue : kGpuQueues)
    wait_for(idle_[queue], list);
}

void Executor::await_updates() {
  for (EventId update : updated_)
    wait_for(update, {});
  wait_for(committed_, {});
}

void Executor::settle() {
  await_updates();
  device_.drain();
}

void Executor::settle_gpu() {
  // The slots of a drive lie in that memory where the device's is the host's own.
  if (store_ && shape_.computes_on_host) await_updates();
  await_gpu({});  // updates of blocks that live there among them
}

void Executor::wait_before(const ReadyList& list, size_t i) {
  note_movement();  // a CPU does the work of the action before in there
  const Action& action = list.actions[i];
  for (int before : action.after)
    device_.wait(action.queue, list.items[static_cast<size_t>(before)].ended);
  for (int b : action.after_update)
    device_.wait(action.queue,
                 (layout_.block(b).reads_weights ? sent_ : updated_)[static_cast<size_t>(b)]);
  if (action.after_commit) device_.wait(action.queue, committed_);
  if (action.verb == Verb::commit) device_.wait(action.queue, pinned_);
  if (action.verb == Verb::update) {
    const bool waits = is_saving();
    update_waits_for_save_[action.block] = waits;
    if (waits) device_.wait(action.queue, saved_[action.block]);
  }
  if (is_traced_) tracer_->begin(action);
}

/** `work` takes two pointers at most: a std::function of more would be allocated. */
template <class Work>
void Executor::enqueue(const Action& action, Work work) {
  static_assert(sizeof(work) <= 2 * sizeof(void*));
  if (profiler_listens())
    device_.submit(action.queue, [work, name = describe(action, shape_)] {
      const ProfilerRange range(name.c_str());
      work();
    });
  else if (hooks_.around)
    device_.submit(action.queue, [this, work, &action] { hooks_.around(action, work); });
  else
    device_.submit(action.queue, work);
}

void Executor::note_end(const ReadyList::Item& item) {
  const Action& action = *item.action;
  if (is_traced_) tracer_->end(action);
  device_.record(item.ended);
  if (ends_update(action)) device_.record(updated_[action.block]);
  if (action.verb == Verb::send_states) device_.record(sent_[action.block]);
  if (action.verb == Verb::commit) device_.record(committed_);
}

void Executor::submit(const ReadyList& list, size_t i) {
  const ReadyList::Item& item = list.items[i];
  wait_before(list, i);
  enqueue(*item.action,
          [&item, updates = &updates_[current_]] { item.executor->run(*item.action, *updates); });
  note_end(item);
}

void Executor::submit_pass(const ReadyList& list, size_t i, ComputeWork& layers) {
  const ReadyList::Item& item = list.items[i];
  wait_before(list, i);
  enqueue(*item.action, [&item, &layers] {
    item.executor->begin_pass(item);
    if (item.action->verb == Verb::backward)
      layers.backward(*item.action, item.memory);
    else
      layers.forward(*item.action, item.memory);
    item.executor->end_pass(item);
  });
  note_end(item);
}

void Executor::open_pass(const ReadyList& list, size_t i) {
  const ReadyList::Item& item = list.items[i];
  wait_before(list, i);
  enqueue(*item.action, [&item] { item.executor->begin_pass(item); });
  device_.record(turn_);
}

void Executor::close_pass(const ReadyList& list, size_t i) {
  const ReadyList::Item& item = list.items[i];
  enqueue(*item.action, [&item] { item.executor->end_pass(item); });
  note_end(item);
}

}  // namespace ferry
