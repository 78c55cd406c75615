// Does each action of a step: moves, adds or updates its bytes.

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "offload/executor/executor.h"
#include "src/base/error.h"

namespace ferry {

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
      // The slot's old content was sent while a forward pass read it. Neither of the two knew
      // whether it was the last to need it.
      if (action.output_slot >= 0)
        poison(layout_.layer_input_slots[static_cast<size_t>(action.output_slot)]);
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
    case Verb::send_layer_input:
    case Verb::fetch_layer_input:
      return move_layer_input(action);
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
  if (action.releases_input)
    poison(layout_.layer_input_slots[static_cast<size_t>(action.input_slot)]);
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
            ? m.weights + shape_.borrowed_in_slot(b, i) * compute_bytes
            : memory_.segment(block(b).borrowed[static_cast<size_t>(i)].block, Segment::weights) +
                  shape_.borrowed_tensor(b, i).offset * compute_bytes);
  const int lane = live(action.micro);
  const auto index = static_cast<size_t>(b * shape_.n_live() + lane);
  // Nobody reads what an evaluation saves. Any slot will do for a block whose activations go to the
  // host.
  if (action.saved_slot >= 0)
    m.saved = memory_.at(layout_.saved_slots[static_cast<size_t>(action.saved_slot)]);
  else if (layout_.saved[index] >= 0)
    m.saved = memory_.at(layout_.saved[index]);
  else if (layout_.saved_on_host[index] >= 0)
    m.saved = memory_.at(layout_.saved_slots[0]);
  else
    m.saved = memory_.at(layout_.saved_recomputed);
  // All saved tensors are in one region where no backward pass follows.
  if (block(b).activations == Activations::selective && block(b).saved_recomputed_bytes > 0 &&
      layout_.saved[index] >= 0)
    m.saved_recomputed = memory_.at(layout_.saved_recomputed);
  auto layer_input = [&](int of, int slot) {
    if (of < 0 || of >= shape_.n_blocks() - 1) return static_cast<std::byte*>(nullptr);
    if (slot >= 0) return memory_.at(layout_.layer_input_slots[static_cast<size_t>(slot)]);
    return memory_.at(layout_.layer_inputs[static_cast<size_t>(of * shape_.n_live() + lane)]);
  };
  auto gradient = [&](int of) {  // all blocks' gradients share two regions
    return memory_.at(
        layout_.layer_input_grads[static_cast<size_t>((of + 2) % 2 * shape_.n_live() + lane)]);
  };
  const bool is_head = b == shape_.n_blocks() - 1;
  m.input = layer_input(b - 1, action.input_slot);
  m.output = layer_input(b, action.output_slot);
  // Nobody reads the output again. Where it has no region of its own, it goes to where the backward
  // pass is about to write.
  if (action.verb == Verb::recompute && !is_head && !m.output) m.output = gradient(b - 1);
  m.batch = memory_.at(layout_.batches[static_cast<size_t>(action.micro)]);
  m.loss = reinterpret_cast<std::byte*>(step_sum(Place::device, shape_.n_blocks() + action.micro));
  if (action.verb != Verb::backward) return m;
  m.grad_output = is_head ? nullptr : gradient(b);
  m.grad_input = b == 0 ? nullptr : gradient(b - 1);
  if (!shape_.has_grads(b)) return m;
  if (shape_.sums_on_gpu(b))
    m.grads = memory_.at(layout_.grad_temp);
  else
    m.grads = action.grad_slot >= 0
                  ? memory_.at(layout_.grad_slots[static_cast<size_t>(action.grad_slot)])
                  : memory_.segment(b, Segment::grads);
  return m;
}

void Executor::run_backward(const Action& action) {
  ActionMemory m = memory_of(action);
  // The norm goes over the whole prefix, and a slot holds another block's gradients before.
  const auto compute_bytes = static_cast<int64_t>(size_of(shape_.compute));
  for (const ElementRange& gap : gaps_[static_cast<size_t>(action.block)])
    device_.math().zero(m.grads + gap.begin * compute_bytes, gap.n * compute_bytes);
  work_.backward(action, m);
  if (shape_.sums_on_gpu(action.block)) {
    std::byte* sum = action.grad_slot >= 0
                         ? memory_.at(layout_.grad_slots[static_cast<size_t>(action.grad_slot)])
                         : memory_.segment(action.block, Segment::grads);
    device_.math().accumulate(reinterpret_cast<float*>(sum), m.grads, shape_.compute,
                              shape_.n_grad_elements(action.block), action.first_sum);
    poison(layout_.grad_temp);
  }
  if (action.saved_slot >= 0) poison(layout_.saved_slots[static_cast<size_t>(action.saved_slot)]);
  if (block(action.block).saved_bytes > block(action.block).saved_kept_bytes())
    poison(layout_.saved_recomputed);
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

void Executor::move_layer_input(const Action& action) {
  std::byte* slot = memory_.at(layout_.layer_input_slots[static_cast<size_t>(action.output_slot)]);
  const RegionId host = layout_.layer_inputs_on_host[static_cast<size_t>(
      action.block * shape_.n_live() + live(action.micro))];
  FERRY_CHECK(host >= 0, "{} has no room on the host", describe(action, shape_));
  if (action.verb == Verb::fetch_layer_input)
    return device_.copy(QueueId::h2d, slot, memory_.at(host), shape_.layer_input_bytes);
  device_.copy(QueueId::d2h, memory_.at(host), slot, shape_.layer_input_bytes);
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
        QueueId::h2d, slot + shape_.borrowed_in_slot(b, i) * compute_bytes,
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
    device_.copy(QueueId::d2h, arrived_sum(b), step_sum(Place::device, b), sizeof(double));
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
                shape_.borrowed_in_grads(user, i);
    math_of(block(owner).place).accumulate(sum, use, DType::f32, tensor.n_elements, false);
  }
}

double* Executor::step_sum(Place place, int index) const {
  RegionId region = place == Place::device ? layout_.step_sums : layout_.step_sums_on_host;
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
  math_of(on_gpu ? Place::device : Place::host)
      .square_sum(grads, segment_dtype(shape_, b, Segment::grads), block(b).n_trained_elements,
                  on_gpu ? step_sum(Place::device, b) : &host_square_sums_[static_cast<size_t>(b)]);
}

void Executor::send_step_sums() {
  device_.copy(QueueId::d2h, step_sum(Place::host, 0), step_sum(Place::device, 0),
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
  // Each block decides for itself where steps go ahead, the late ones as the early ones did.
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
