#include "offload/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "offload/profiler_ranges.h"
#include "src/base/error.h"

namespace ferry {
namespace {

constexpr QueueId kGpuQueues[] = {QueueId::compute, QueueId::h2d, QueueId::d2h};

bool is_update(const Action& action) {
  return action.verb == Verb::update_gpu || action.verb == Verb::update_host;
}

}  // namespace

Executor::Executor(const StepShape& shape,
                   Device& device,
                   WorkerPool& pool,
                   RunMemory& memory,
                   ComputeWork& work,
                   bool overlap)
    : shape_(shape),
      device_(device),
      pool_(pool),
      host_math_(pool),
      memory_(memory),
      layout_(memory.layout()),
      work_(work),
      overlap_(overlap),
      watchdog_(watchdog_of_environment()),
      update_waits_for_save_(shape.blocks.size()),
      save_ended_(device.make_event()),
      host_square_sums_(shape.blocks.size()) {
  for (EventId& idle : idle_)
    idle = device_.make_event();
  for (int b = 0; b < shape.n_blocks(); ++b) {
    updated_.push_back(device_.make_event());
    saved_.push_back(device_.make_event());
    std::ranges::copy_if(block(b).tensors, std::back_inserter(trained_.emplace_back()),
                         &TensorExtent::trainable);
    for (const BorrowedExtent& borrowed : block(b).borrowed)
      FERRY_CHECK(block(borrowed.block).place == block(b).place,
                  "{} and {} share a tensor but not a place", block(b).name,
                  block(borrowed.block).name);
  }
  // As steps will ask for them: the decision waits for the blocks on the GPU, the updates of the
  // host follow it in this order, and nobody waits for what is frozen.
  save_order_.resize(updated_.size());
  std::iota(save_order_.begin(), save_order_.end(), 0);
  std::ranges::stable_sort(save_order_, {}, [&](int b) {
    return !shape_.is_trained(b) ? 2 : block(b).place == Place::host ? 1 : 0;
  });
}

Executor::~Executor() {
  try {
    device_.drain();
  } catch (...) {  // whoever waited for the step has seen it
  }
}

const StepList& Executor::training_list(int n_micro, UpdateOrder order) {
  auto [at, made] = lists_.try_emplace({n_micro, order});
  if (made) {
    at->second = make_training_list(shape_, n_micro, order);
    if (fault_) fault_(at->second);
    check_order(at->second);
  }
  return at->second;
}

void Executor::check_order(const StepList& list) const {
  for (size_t i = 0; i < list.size(); ++i)
    for (int before : list[i].after)
      FERRY_CHECK(static_cast<size_t>(before) < i, "{} waits for {}, a later action",
                  describe(list[i], shape_), describe(list[static_cast<size_t>(before)], shape_));
}

EventId Executor::event(size_t action) {
  while (events_.size() <= action)
    events_.push_back(device_.make_event());
  return events_[action];
}

std::optional<StepOutcome> Executor::step(int n_micro,
                                          const UpdateRule& rule,
                                          const std::function<bool()>& drops) {
  using Clock = std::chrono::steady_clock;
  // Beside a checkpoint updates wait for the disk, a block's for its own bytes: in the order of
  // need and after the decision they hold up nothing else, and the step can still be dropped.
  const bool each_decides = !rule.steps_ahead.empty();
  const auto order =
      each_decides && !is_saving() ? UpdateOrder::as_grads_arrive : UpdateOrder::after_decision;
  const StepList& list = training_list(n_micro, order);
  if (dropped_ && !await_dropped(drops)) return std::nullopt;
  rule_ = &rule;
  n_micro_ = n_micro;
  current_ = 1 - current_;
  updates_[current_] = {
      .order = order, .each_decides = each_decides, .decision = {.steps = rule.steps_ahead}};
  const auto start = Clock::now();
  if (tracer_) tracer_->begin_step();
  compute_actions_.clear();
  waited_for_disk_ = {};
  bool may_drop = true;
  for (size_t i = 0; i < list.size(); ++i) {
    if (may_drop && drops) {
      stay_near(list);
      if (drops() || !await_saved(list[i], list, drops)) return drop_step(list);
    }
    may_drop = may_drop && !is_update(list[i]);
    submit(list, i);
    if (list[i].queue == QueueId::compute) compute_actions_.push_back(i);
    if (list[i].verb != Verb::decide) continue;
    // The one host synchronisation of a step of seconds: what follows needs the decision.
    wait_for(event(i), list);
    may_drop = false;
    measure_run_ahead(Clock::now() - start - waited_for_disk_);
  }
  if (!overlap_) await_updates();
  return outcome_;
}

/** A step that shall be dropped must not have minutes of work before it on the GPU; one of a second
 * or two is never waited for. */
void Executor::stay_near(const StepList& list) {
  const size_t n_ahead = fixed_run_ahead_.value_or(run_ahead_);
  if (compute_actions_.size() >= n_ahead)
    wait_for(event(compute_actions_[compute_actions_.size() - n_ahead]), list);
}

void Executor::measure_run_ahead(std::chrono::duration<double> step) {
  constexpr std::chrono::duration<double> kAhead{2.0};
  const double n = static_cast<double>(compute_actions_.size()) * (kAhead / step);
  run_ahead_ = static_cast<size_t>(std::clamp(n, 2.0, static_cast<double>(kRunAhead_max)));
}

/** What an action needs of a host block may be an update that waits for a checkpoint to have the
 * block's bytes, as long as the disk takes. It is not submitted before: a pause would wait for the
 * disk, too. Nor is the decision before the blocks that live on the GPU, whose updates follow it
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
    if (block(b).place == Place::gpu && shape_.is_trained(b)) has_all = await(b);
  waited_for_disk_ += std::chrono::steady_clock::now() - start;
  return has_all;
}

/** The host may still be at work for a step that was dropped, in memory that the next one uses, and
 * before that with updates that wait for a checkpoint. */
bool Executor::await_dropped(const std::function<bool()>& drops) {
  const EventId idle = idle_[static_cast<size_t>(QueueId::host)];
  device_.record(QueueId::host, idle);
  if (!wait_unless(idle, *dropped_, drops)) return false;
  dropped_ = nullptr;
  return true;
}

std::optional<StepOutcome> Executor::drop_step(const StepList& list) {
  dropped_ = &list;
  await_idle(kGpuQueues, list);
  return std::nullopt;
}

void Executor::await_idle(std::span<const QueueId> queues, const StepList& list) {
  for (QueueId queue : queues)
    device_.record(queue, idle_[static_cast<size_t>(queue)]);
  for (QueueId queue : queues)
    wait_for(idle_[static_cast<size_t>(queue)], list);
}

double Executor::evaluate() {
  if (evaluation_list_.empty()) evaluation_list_ = make_evaluation_list(shape_);
  n_micro_ = 1;
  StepTracer* const tracer = std::exchange(tracer_, nullptr);  // it traces steps
  for (size_t i = 0; i < evaluation_list_.size(); ++i)
    submit(evaluation_list_, i);
  tracer_ = tracer;
  wait_for(event(evaluation_list_.size() - 1), evaluation_list_);
  float loss;
  std::memcpy(&loss, step_sum(Place::host, shape_.n_blocks()), sizeof loss);
  return loss;
}

void Executor::await_updates() {
  for (EventId update : updated_)
    wait_for(update, {});
}

void Executor::settle() {
  await_updates();
  device_.drain();
}

void Executor::settle_gpu() {
  await_idle(kGpuQueues, {});  // updates of blocks that live there among them
}

void Executor::submit(const StepList& list, size_t i) {
  const Action& action = list[i];
  for (int before : action.after)
    device_.wait(action.queue, event(static_cast<size_t>(before)));
  for (int b : action.after_update)
    device_.wait(action.queue, updated_[static_cast<size_t>(b)]);
  if (is_update(action)) {
    const bool waits = is_saving();
    update_waits_for_save_[static_cast<size_t>(action.block)] = waits;
    if (waits) device_.wait(action.queue, saved_[static_cast<size_t>(action.block)]);
  }
  if (tracer_) tracer_->begin(action);
  auto work = [this, &action, updates = &updates_[current_]] { run(action, *updates); };
  if (profiler_listens())
    device_.submit(action.queue, [work, name = describe(action, shape_)] {
      const ProfilerRange range(name.c_str());
      work();
    });
  else
    device_.submit(action.queue, work);
  if (tracer_) tracer_->end(action);
  device_.record(action.queue, event(i));
  if (is_update(action)) device_.record(action.queue, updated_[static_cast<size_t>(action.block)]);
}

void Executor::run(const Action& action, Updates& updates) {
  switch (action.verb) {
    case Verb::fetch_batch:
      return device_.copy(QueueId::h2d,
                          memory_.at(layout_.batches[static_cast<size_t>(action.micro)]),
                          memory_.at(layout_.batches_on_host[static_cast<size_t>(action.micro)]),
                          shape_.batch_bytes);
    case Verb::fetch_weights:
      return fetch_weights(action);
    case Verb::forward:
      // What lay there was sent beside the forward that read it: neither knew whether it was last.
      if (action.output_slot >= 0)
        poison(layout_.boundary_slots[static_cast<size_t>(action.output_slot)]);
      [[fallthrough]];
    case Verb::recompute:
      work_.forward(action, memory_of(action));
      break;
    case Verb::backward:
      run_backward(action);
      break;
    case Verb::send_saved:
    case Verb::fetch_saved:
      return move_saved(action);
    case Verb::send_boundary:
    case Verb::fetch_boundary:
      return move_boundary(action);
    case Verb::square_sum_gpu:
    case Verb::square_sum_host:
      return square_sum(action);
    case Verb::send_grads:
      return send_grads(action, updates);
    case Verb::accumulate:
      return accumulate(action);
    case Verb::combine:
      return combine(action);
    case Verb::send_step_sums:
      return send_step_sums();
    case Verb::decide:
      return decide(updates);
    case Verb::update_gpu:
    case Verb::update_host:
      return update(action, updates);
  }
  if (action.releases_slot) poison(layout_.weight_slots[static_cast<size_t>(action.slot)]);
  if (action.releases_input) poison(layout_.boundary_slots[static_cast<size_t>(action.input_slot)]);
}

void Executor::poison(RegionId region) {
  if (region >= 0) device_.poison(memory_.at(region), layout_.region(region).n_bytes);
}

ActionMemory Executor::memory_of(const Action& action) const {
  const auto compute_bytes = static_cast<int64_t>(size_of(shape_.compute));
  const int b = action.block;
  ActionMemory m;
  m.weights = action.slot >= 0 ? memory_.at(layout_.weight_slots[static_cast<size_t>(action.slot)])
                               : memory_.segment(b, Segment::weights);
  for (int i = 0; i < static_cast<int>(block(b).borrowed.size()); ++i)
    m.borrowed.push_back(
        action.slot >= 0
            ? m.weights + shape_.borrowed_offset(b, i) * compute_bytes
            : memory_.segment(block(b).borrowed[static_cast<size_t>(i)].block, Segment::weights) +
                  shape_.borrowed_tensor(b, i).offset * compute_bytes);
  const int lane = live(action.micro);
  const auto index = static_cast<size_t>(b * shape_.n_live() + lane);
  // Nobody reads what an evaluation saves: of a block whose saved tensors go to the host, any slot
  // will do.
  if (action.saved_slot >= 0)
    m.saved = memory_.at(layout_.saved_slots[static_cast<size_t>(action.saved_slot)]);
  else if (layout_.saved[index] >= 0)
    m.saved = memory_.at(layout_.saved[index]);
  else if (layout_.saved_on_host[index] >= 0)
    m.saved = memory_.at(layout_.saved_slots[0]);
  else
    m.saved = memory_.at(layout_.saved_remade);
  // Where no backward follows, all are in one region.
  if (block(b).activations == Activations::selective && block(b).saved_remade_bytes > 0 &&
      layout_.saved[index] >= 0)
    m.saved_remade = memory_.at(layout_.saved_remade);
  auto boundary = [&](int of, int slot) {
    if (of < 0 || of >= shape_.n_blocks() - 1) return static_cast<std::byte*>(nullptr);
    if (slot >= 0) return memory_.at(layout_.boundary_slots[static_cast<size_t>(slot)]);
    return memory_.at(layout_.boundaries[static_cast<size_t>(of * shape_.n_live() + lane)]);
  };
  auto gradient = [&](int of) {  // of a block's output, for all blocks in two regions in turn
    return memory_.at(
        layout_.grad_boundaries[static_cast<size_t>((of + 2) % 2 * shape_.n_live() + lane)]);
  };
  const bool is_head = b == shape_.n_blocks() - 1;
  m.input = boundary(b - 1, action.input_slot);
  m.output = boundary(b, action.output_slot);
  // Nobody reads the output again: where it has no region of its own it goes to where the backward
  // is about to write.
  if (action.verb == Verb::recompute && !is_head && !m.output) m.output = gradient(b - 1);
  m.batch = memory_.at(layout_.batches[static_cast<size_t>(action.micro)]);
  m.loss = reinterpret_cast<std::byte*>(step_sum(Place::gpu, shape_.n_blocks() + action.micro));
  if (action.verb != Verb::backward) return m;
  m.grad_output = is_head ? nullptr : gradient(b);
  m.grad_input = b == 0 ? nullptr : gradient(b - 1);
  if (shape_.sums_on_gpu(b) || !shape_.has_grads(b))
    m.grads = memory_.at(layout_.grad_temp);
  else
    m.grads = action.grad_slot >= 0
                  ? memory_.at(layout_.grad_slots[static_cast<size_t>(action.grad_slot)])
                  : memory_.segment(b, Segment::grads);
  return m;
}

void Executor::run_backward(const Action& action) {
  ActionMemory m = memory_of(action);
  work_.backward(action, m);
  if (shape_.sums_on_gpu(action.block)) {
    std::byte* sum = action.grad_slot >= 0
                         ? memory_.at(layout_.grad_slots[static_cast<size_t>(action.grad_slot)])
                         : memory_.segment(action.block, Segment::grads);
    device_.math().accumulate(reinterpret_cast<float*>(sum), m.grads, shape_.compute,
                              shape_.n_grad_elements(action.block), action.first_sum);
  }
  if (m.grads == memory_.at(layout_.grad_temp)) poison(layout_.grad_temp);
  if (action.saved_slot >= 0) poison(layout_.saved_slots[static_cast<size_t>(action.saved_slot)]);
  if (block(action.block).saved_bytes > block(action.block).saved_kept_bytes())
    poison(layout_.saved_remade);
}

void Executor::move_saved(const Action& action) {
  const RegionId slot = layout_.saved_slots[static_cast<size_t>(action.saved_slot)];
  std::byte* host = memory_.at(
      layout_
          .saved_on_host[static_cast<size_t>(action.block * shape_.n_live() + live(action.micro))]);
  const int64_t n_bytes = block(action.block).saved_bytes;
  if (action.verb == Verb::fetch_saved)
    return device_.copy(QueueId::h2d, memory_.at(slot), host, n_bytes);
  device_.copy(QueueId::d2h, host, memory_.at(slot), n_bytes);
  poison(slot);
}

void Executor::move_boundary(const Action& action) {
  std::byte* slot = memory_.at(layout_.boundary_slots[static_cast<size_t>(action.output_slot)]);
  const RegionId host = layout_.boundaries_on_host[static_cast<size_t>(
      action.block * shape_.n_live() + live(action.micro))];
  FERRY_CHECK(host >= 0, "{} has no room on the host", describe(action, shape_));
  if (action.verb == Verb::fetch_boundary)
    return device_.copy(QueueId::h2d, slot, memory_.at(host), shape_.boundary_bytes);
  device_.copy(QueueId::d2h, memory_.at(host), slot, shape_.boundary_bytes);
}

void Executor::fetch_weights(const Action& action) {
  const auto compute_bytes = static_cast<int64_t>(size_of(shape_.compute));
  const int b = action.block;
  std::byte* slot = memory_.at(layout_.weight_slots[static_cast<size_t>(action.slot)]);
  device_.copy(QueueId::h2d, slot, memory_.segment(b, Segment::weights),
               block(b).n_elements * compute_bytes);
  for (int i = 0; i < static_cast<int>(block(b).borrowed.size()); ++i) {
    const TensorExtent& tensor = shape_.borrowed_tensor(b, i);
    device_.copy(
        QueueId::h2d, slot + shape_.borrowed_offset(b, i) * compute_bytes,
        memory_.segment(block(b).borrowed[static_cast<size_t>(i)].block, Segment::weights) +
            tensor.offset * compute_bytes,
        tensor.n_elements * compute_bytes);
  }
}

void Executor::send_grads(const Action& action, const Updates& updates) {
  const int b = action.block;
  const bool staged = shape_.sums_on_host(b);
  std::byte* to = staged ? memory_.at(layout_.grad_staging[static_cast<size_t>(action.grad_slot)])
                         : memory_.segment(b, Segment::grads);
  DType type = staged ? shape_.compute : segment_dtype(shape_, b, Segment::grads);
  const RegionId slot = layout_.grad_slots[static_cast<size_t>(action.grad_slot)];
  device_.copy(QueueId::d2h, to, memory_.at(slot),
               shape_.n_grad_elements(b) * static_cast<int64_t>(size_of(type)));
  // The update that follows asks whether they are finite; the step's sums come too late for it.
  if (updates.each_decides && !staged && shape_.is_trained(b) && !shape_.tied(b))
    device_.copy(QueueId::d2h, arrived_sum(b), step_sum(Place::gpu, b), sizeof(double));
  poison(slot);
}

void Executor::accumulate(const Action& action) {
  const RegionId staging = layout_.grad_staging[static_cast<size_t>(action.grad_slot)];
  host_math_.accumulate(reinterpret_cast<float*>(memory_.segment(action.block, Segment::grads)),
                        memory_.at(staging), shape_.compute, shape_.n_grad_elements(action.block),
                        action.first_sum);
  poison(staging);
}

void Executor::combine(const Action& action) {
  const int user = action.block;
  for (int i = 0; i < static_cast<int>(block(user).borrowed.size()); ++i) {
    const int owner = block(user).borrowed[static_cast<size_t>(i)].block;
    const TensorExtent& tensor = shape_.borrowed_tensor(user, i);
    if (!tensor.trainable) continue;
    auto* sum = reinterpret_cast<float*>(memory_.segment(owner, Segment::grads)) + tensor.offset;
    auto* use = reinterpret_cast<float*>(memory_.segment(user, Segment::grads)) +
                shape_.borrowed_offset(user, i);
    math_of(block(owner).place).accumulate(sum, use, DType::f32, tensor.n_elements, false);
  }
}

double* Executor::step_sum(Place place, int index) const {
  RegionId region = place == Place::gpu ? layout_.step_sums : layout_.step_sums_on_host;
  return reinterpret_cast<double*>(memory_.at(region)) + index;
}

double* Executor::arrived_sum(int block) const {
  return reinterpret_cast<double*>(memory_.at(layout_.arrived_sums)) + block;
}

void Executor::square_sum(const Action& action) {
  const int b = action.block;
  const bool on_gpu = action.verb == Verb::square_sum_gpu;
  const std::byte* grads =
      action.grad_slot >= 0 ? memory_.at(layout_.grad_slots[static_cast<size_t>(action.grad_slot)])
                            : memory_.segment(b, Segment::grads);
  math_of(on_gpu ? Place::gpu : Place::host)
      .square_sum(grads, segment_dtype(shape_, b, Segment::grads), trained_[static_cast<size_t>(b)],
                  on_gpu ? step_sum(Place::gpu, b) : &host_square_sums_[static_cast<size_t>(b)]);
}

void Executor::send_step_sums() {
  device_.copy(QueueId::d2h, step_sum(Place::host, 0), step_sum(Place::gpu, 0),
               step_sums_bytes(shape_));
}

void Executor::decide(Updates& updates) {
  outcome_ = {};
  const StepList& list = lists_.at({n_micro_, updates.order});
  StepSums sums;
  for (const Action& action : list) {
    if (action.verb != Verb::square_sum_gpu && action.verb != Verb::square_sum_host) continue;
    double& sum = host_square_sums_[static_cast<size_t>(action.block)];
    if (action.verb == Verb::square_sum_gpu) sum = *step_sum(Place::host, action.block);
    sums.has_finite_block |= std::isfinite(sum);
  }
  outcome_.square_sum = sums.square_sum =
      simd::sum_in_order(host_square_sums_.data(), static_cast<int64_t>(host_square_sums_.size()));
  for (int m = 0; m < n_micro_; ++m) {
    float loss;
    std::memcpy(&loss, step_sum(Place::host, shape_.n_blocks() + m), sizeof loss);
    outcome_.loss += static_cast<double>(loss);
  }
  outcome_.decision = rule_->decide(sums);
  // With steps ahead each block decides for itself, the late ones as the early ones did.
  if (!updates.each_decides) updates.decision = outcome_.decision;
}

bool Executor::is_finite(const Action& update) const {
  const int b = update.block;
  const bool has_arrived =
      update.verb == Verb::update_host && !shape_.sums_on_host(b) && !shape_.tied(b);
  return std::isfinite(has_arrived ? *arrived_sum(b) : host_square_sums_[static_cast<size_t>(b)]);
}

double Executor::repeat_host_updates() {
  const auto start = std::chrono::steady_clock::now();
  for (int b = 0; b < shape_.n_blocks(); ++b)
    if (block(b).place == Place::host)
      update({.verb = Verb::update_host, .block = b}, updates_[current_]);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Executor::update(const Action& action, const Updates& updates) {
  if (updates.each_decides && !is_finite(action)) return;
  if (updates.decision.skip) return;
  const int b = action.block;
  auto& args = action.verb == Verb::update_gpu ? update_gpu_args_ : update_host_args_;
  args.clear();
  const auto at = [&](Segment s, const TensorExtent& t) -> std::byte* {
    return memory_.segment(b, s) + element_bytes(shape_, b, s, t.offset, t.n_elements).offset;
  };
  const auto exponents = [&](Segment s, const TensorExtent& t) -> uint8_t* {
    if (shape_.states != simd::StateType::block8) return nullptr;
    return reinterpret_cast<uint8_t*>(memory_.segment(b, s)) + exponent_bytes(shape_, b, t).offset;
  };
  for (const TensorExtent& t : trained_[static_cast<size_t>(b)]) {
    const simd::AdamwStep& step = updates.decision.steps.at(static_cast<size_t>(t.group));
    args.push_back({.master = at(Segment::master, t),
                    .m = at(Segment::adam_m, t),
                    .v = at(Segment::adam_v, t),
                    .grad = at(Segment::grads, t),
                    .grad_type = segment_dtype(shape_, b, Segment::grads),
                    .weights = shape_.weights_are_master() ? nullptr : at(Segment::weights, t),
                    .weights_type = shape_.compute,
                    .n = t.n_elements,
                    .step = step,
                    .states = shape_.states,
                    .split_master = shape_.split_master,
                    .m_exponents = exponents(Segment::adam_m, t),
                    .v_exponents = exponents(Segment::adam_v, t),
                    .noise_key = simd::noise_key(step, b, t.offset)});
  }
  math_of(block(b).place).adamw(args);
}

}  // namespace ferry
