// Does each action of a step: moves, adds or updates its bytes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "offload/executor/executor.h"
#include "src/base/error.h"

namespace ferry {
namespace {

const Bytes* find(const std::vector<Bytes>& bytes, Role role) {
  const auto found = std::ranges::find(bytes, role, &Bytes::role);
  return found == bytes.end() ? nullptr : &*found;
}

}  // namespace

// ---- Made once

Executor::ReadyList Executor::ready(StepList list) {
  ReadyList ready;
  ready.memories.reserve(list.size());
  for (const Action& action : list) {
    const bool is_pass = action.verb == Verb::forward || action.verb == Verb::recompute ||
                         action.verb == Verb::backward;
    ready.memories.push_back(is_pass ? memory_of(action) : ActionMemory());
  }
  ready.ended = events_of(list);
  ready.actions = std::move(list);
  return ready;
}

ActionMemory Executor::memory_of(const Action& action) const {
  ActionMemory memory;
  for (const std::vector<Bytes>* all : {&action.reads, &action.writes})
    for (const Bytes& bytes : *all) {
      auto* address = at<std::byte>(bytes);
      switch (bytes.role) {
        case Role::weights:
          memory.weights = address;
          break;
        case Role::borrowed:
          memory.borrowed.push_back(address);
          break;
        case Role::batch:
          memory.batch = address;
          break;
        case Role::input:
          memory.inputs.push_back(address);
          break;
        case Role::output:
          memory.outputs.push_back(address);
          break;
        case Role::saved:
          memory.saved = address;
          break;
        case Role::saved_recomputed:
          memory.saved_recomputed = address;
          break;
        case Role::grad_output:
          memory.grad_outputs.push_back(address);
          break;
        case Role::grad_input:
          memory.grad_inputs.push_back(address);
          break;
        case Role::grads:
          memory.grads = address;
          break;
        case Role::loss:
          memory.loss = address;
          break;
        case Role::moved:
        case Role::batch_on_host:
        case Role::sum:
        case Role::workspace:
        case Role::states:
        case Role::square_sum:
        case Role::released:
          break;
      }
    }
  return memory;
}

void Executor::prepare_updates() {
  block_updates_.resize(shape_.blocks.size());
  piece_updates_.resize(shape_.blocks.size());
  for (int b = 0; b < shape_.n_blocks(); ++b) {
    if (!layout_.block(b).is_trained) continue;
    const auto at = [&](Segment s, const TensorExtent& t) { return address_of(b, s, t.offset); };
    const auto exponents = [&](Segment s, const TensorExtent& t) -> uint8_t* {
      if (shape_.states != simd::StateType::block8) return nullptr;
      return reinterpret_cast<uint8_t*>(memory_.segment(b, s)) +
             exponent_bytes(shape_, b, t).offset;
    };
    auto& [tensors, extents, gaps] = block_updates_[static_cast<size_t>(b)];
    std::ranges::copy_if(block(b).tensors, std::back_inserter(extents), &TensorExtent::trainable);
    std::ranges::sort(extents, {}, &TensorExtent::offset);
    for (size_t t = 0; t < extents.size(); ++t) {
      const int64_t end = extents[t].offset + extents[t].n_elements;
      const int64_t next =
          t + 1 < extents.size() ? extents[t + 1].offset : block(b).n_trained_elements;
      FERRY_CHECK(end <= next, "{}: trained tensors up to {} of {}", block(b).name, end, next);
      if (end < next) gaps.push_back({end, next - end});
    }
    if (layout_.block(b).n_state_pieces > 0) {
      prepare_pieces(b);
      continue;
    }
    for (const TensorExtent& t : extents)
      tensors.push_back({.master = at(Segment::master, t),
                         .m = at(Segment::adam_m, t),
                         .v = at(Segment::adam_v, t),
                         .grad = at(Segment::grads, t),
                         .grad_type = layout_.block(b).grad_type,
                         .weights = shape_.weights_are_master() ? nullptr : at(Segment::weights, t),
                         .weights_type = shape_.compute,
                         .n = t.n_elements,
                         .states = shape_.states,
                         .split_master = shape_.split_master,
                         .m_exponents = exponents(Segment::adam_m, t),
                         .v_exponents = exponents(Segment::adam_v, t)});
  }
}

std::byte* Executor::address_of(int b, Segment segment, int64_t element) const {
  return memory_.segment(b, segment) + element_bytes(shape_, b, segment, element, 0).offset;
}

void Executor::prepare_pieces(int b) {
  for (int piece = 0; piece < layout_.block(b).n_state_pieces; ++piece) {
    PieceUpdate update = {.record = state_record(shape_, b, piece)};
    const int64_t piece_begin = update.record.begin,
                  piece_end = piece_begin + update.record.n_elements;
    for (const TensorExtent& t : block_updates_[static_cast<size_t>(b)].extents) {
      const int64_t begin = std::max(t.offset, piece_begin),
                    end = std::min(t.offset + t.n_elements, piece_end);
      if (begin >= end) continue;
      // In the slot, where a drive has them; gradients, too.
      std::byte* weights =
          layout_.block(b).reads_weights ? nullptr : address_of(b, Segment::weights, begin);
      const bool is_master = shape_.weights_are_master();
      update.parts.push_back(
          {.tensor_offset = t.offset, .group = t.group, .begin = begin - piece_begin});
      update.tensors.push_back(
          {.master = is_master ? weights : nullptr,
           .grad = update.record.grads.n_bytes > 0 ? nullptr : address_of(b, Segment::grads, begin),
           .grad_type = layout_.block(b).grad_type,
           .weights = is_master ? nullptr : weights,
           .weights_type = shape_.compute,
           .n = end - begin,
           .states = shape_.states,
           .split_master = shape_.split_master,
           .first_element = begin - t.offset});
    }
    // Weights that the update does not read are written as a whole.
    const bool writes_all =
        layout_.block(b).reads_weights && update.record.update_bytes == update.record.states_bytes;
    for (const ElementRange& gap : block_updates_[static_cast<size_t>(b)].gaps) {
      const int64_t begin = std::max(gap.begin, piece_begin),
                    end = std::min(gap.begin + gap.n, piece_end);
      if (!writes_all || begin >= end) continue;
      const ByteRange bytes =
          element_bytes(shape_, b, Segment::weights, begin - piece_begin, end - begin);
      update.gaps.push_back({update.record.weights.offset + bytes.offset, bytes.n_bytes});
    }
    piece_updates_[static_cast<size_t>(b)].push_back(std::move(update));
  }
}

// ---- Done in each step

void Executor::run(const Action& action, const ActionMemory& memory, Updates& updates) {
  switch (action.verb) {
    case Verb::forward:
    case Verb::recompute:
      work_.forward(action, memory);
      break;
    case Verb::backward:
      backward(action, memory);
      break;
    case Verb::accumulate:
      accumulate(action);
      break;
    case Verb::combine:
      combine(action);
      break;
    case Verb::square_sum:
      square_sum(action);
      break;
    case Verb::decide:
      decide(action, updates);
      break;
    case Verb::update:
      update(action, updates);
      break;
    case Verb::read_weights:
      store_->read_weights(action.block, at<std::byte>(action.writes.front()));
      break;
    case Verb::write_grads:
      store_->write_grads(action.block, action.piece, at<std::byte>(action.reads.front()));
      break;
    case Verb::read_grads:
      store_->read_grads(action.block, action.piece, at<std::byte>(action.writes.front()));
      break;
    case Verb::fetch_states:
      fetch_states(action);
      break;
    case Verb::send_states:
      send_states(action);
      break;
    case Verb::send_weights:
      if (has_changed_[static_cast<size_t>(action.block)]) move(action);
      break;
    case Verb::commit:
      if (updates.commits) store_->extents().commit(updates.metadata);
      break;
    default:
      move(action);
  }
  for (const Bytes& bytes : action.writes)
    if (bytes.role == Role::released) device_.poison(at<std::byte>(bytes), bytes.n_bytes);
}

void Executor::move(const Action& action) {
  for (size_t i = 0; i < action.reads.size(); ++i)
    device_.copy(action.queue, at<std::byte>(action.writes[i]), at<std::byte>(action.reads[i]),
                 action.reads[i].n_bytes);
}

void Executor::backward(const Action& action, const ActionMemory& memory) {
  // The norm goes over the whole prefix, and a slot holds another block's gradients before.
  const auto compute_bytes = static_cast<int64_t>(size_of(shape_.compute));
  if (memory.grads)
    for (const ElementRange& gap : block_updates_[static_cast<size_t>(action.block)].gaps)
      device_.math().zero(memory.grads + gap.begin * compute_bytes, gap.n * compute_bytes);
  work_.backward(action, memory);
  if (find(action.writes, Role::sum)) accumulate(action);
}

void Executor::accumulate(const Action& action) {
  const Bytes& sum = *find(action.writes, Role::sum);
  const bool is_first = !find(action.reads, Role::sum);
  const Bytes* grads = find(action.reads, Role::grads);
  if (!grads) grads = find(action.writes, Role::grads);
  math_of(action.queue)
      .accumulate(at<float>(sum), at<std::byte>(*grads), shape_.compute,
                  sum.n_bytes / static_cast<int64_t>(sizeof(float)), is_first);
}

void Executor::combine(const Action& action) {
  for (size_t i = 0; i < action.writes.size(); ++i)
    math_of(action.queue)
        .accumulate(at<float>(action.writes[i]), at<std::byte>(action.reads[i]), DType::f32,
                    action.reads[i].n_bytes / static_cast<int64_t>(sizeof(float)), false);
}

void Executor::square_sum(const Action& action) {
  const DType type = layout_.block(action.block).grad_type;
  math_of(action.queue)
      .square_sum(at<std::byte>(action.reads[0]), type,
                  action.reads[0].n_bytes / static_cast<int64_t>(size_of(type)),
                  at<double>(action.writes[0]));
}

void Executor::decide(const Action& action, Updates& updates) {
  outcome_ = {};
  StepSums sums;
  for (const Bytes& bytes : action.reads) {
    if (bytes.role == Role::loss) {
      outcome_.loss += static_cast<double>(*at<float>(bytes));
      continue;
    }
    const double sum = *at<double>(bytes);
    square_sums_[static_cast<size_t>(bytes.offset) / sizeof(double)] = sum;
    sums.has_finite_block |= std::isfinite(sum);
  }
  outcome_.square_sum = sums.square_sum =
      simd::sum_in_order(square_sums_.data(), static_cast<int64_t>(square_sums_.size()));
  outcome_.decision = rule_->decide(sums);
  // Each block decides for itself where steps go ahead, the late ones as the early ones did.
  if (!updates.each_decides) updates.decision = outcome_.decision;
  updates.metadata = rule_->describe ? rule_->describe(outcome_) : std::string();
  updates.commits = rule_->commits;
}

double Executor::repeat_host_updates() {
  const auto start = std::chrono::steady_clock::now();
  for (int b = 0; b < shape_.n_blocks(); ++b)
    if (layout_.block(b).updates_on_host && layout_.block(b).is_trained &&
        layout_.block(b).n_state_pieces == 0)
      update(b, updates_[current_]);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool Executor::changes_states(const Action& action, const Updates& updates) const {
  const Bytes* square_sum = find(action.reads, Role::square_sum);
  return !updates.decision.skip && (!square_sum || std::isfinite(*at<double>(*square_sum)));
}

void Executor::update(const Action& action, const Updates& updates) {
  const bool changes = changes_states(action, updates);
  const bool is_in_slot = layout_.block(action.block).sends_weights;
  if (action.piece >= 0) piece_of(action).has_changed = changes;
  if (is_in_slot) has_changed_[static_cast<size_t>(action.block)] = changes;
  if (!changes) return;
  if (is_in_slot) use_slot(action);
  action.piece < 0 ? update(action.block, updates) : update_piece(action, updates);
}

void Executor::use_slot(const Action& action) {
  auto& [tensors, extents, gaps] = block_updates_[static_cast<size_t>(action.block)];
  auto* const slot = at<std::byte>(*find(action.writes, Role::weights));
  const auto width = static_cast<int64_t>(size_of(shape_.compute));
  const auto* const grads = at<std::byte>(*find(action.reads, Role::grads));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const int64_t offset = extents[t].offset;
    (shape_.weights_are_master() ? tensors[t].master : tensors[t].weights) = slot + offset * width;
    tensors[t].grad = grads + element_bytes(shape_, action.block, Segment::grads, offset, 0).offset;
  }
  // All of the prefix is sent, and the slot held another block before.
  for (const ElementRange& gap : gaps)
    device_.math().zero(slot + gap.begin * width, gap.n * width);
}

void Executor::fetch_states(const Action& action) {
  store_->read(action.block, action.piece, at<std::byte>(action.writes.front()));
}

void Executor::send_states(const Action& action) {
  if (!piece_of(action).has_changed) return;
  store_->write(action.block, action.piece, at<std::byte>(*find(action.reads, Role::states)));
}

void Executor::update_piece(const Action& action, const Updates& updates) {
  PieceUpdate& update = piece_of(action);
  const StateRecord& record = update.record;
  auto* slot = at<std::byte>(*find(action.writes, Role::states));
  for (size_t t = 0; t < update.tensors.size(); ++t) {
    simd::AdamwArgs& tensor = update.tensors[t];
    const PieceUpdate::Part& part = update.parts[t];
    const auto at = [&](Segment segment) {
      return slot + record.part(segment).offset +
             element_bytes(shape_, action.block, segment, part.begin, 0).offset;
    };
    const auto exponents = [&](const ByteRange& all) {
      return reinterpret_cast<uint8_t*>(slot) + all.offset + part.begin / simd::kStateBlock;
    };
    const bool are_weights_here = layout_.block(action.block).reads_weights;
    if (!shape_.weights_are_master() || are_weights_here) tensor.master = at(Segment::master);
    if (!shape_.weights_are_master() && are_weights_here) tensor.weights = at(Segment::weights);
    if (record.grads.n_bytes > 0) tensor.grad = at(Segment::grads);
    tensor.m = at(Segment::adam_m);
    tensor.v = at(Segment::adam_v);
    if (shape_.states == simd::StateType::block8) {
      tensor.m_exponents = exponents(record.m_exponents);
      tensor.v_exponents = exponents(record.v_exponents);
    }
    tensor.step = updates.decision.steps.at(static_cast<size_t>(part.group));
    tensor.noise_key = simd::noise_key(tensor.step, action.block, part.tensor_offset);
  }
  math_of(action.queue).adamw(update.tensors);
  for (const ByteRange& gap : update.gaps)
    std::memset(slot + gap.offset, 0, static_cast<size_t>(gap.n_bytes));
  if (record.weights.n_bytes > 0 && !layout_.block(action.block).reads_weights)
    std::memcpy(slot + record.weights.offset,
                address_of(action.block, Segment::weights, record.begin),
                static_cast<size_t>(record.weights.n_bytes));
}

void Executor::update(int b, const Updates& updates) {
  auto& [tensors, extents, gaps] = block_updates_[static_cast<size_t>(b)];
  for (size_t t = 0; t < tensors.size(); ++t) {
    tensors[t].step = updates.decision.steps.at(static_cast<size_t>(extents[t].group));
    tensors[t].noise_key = simd::noise_key(tensors[t].step, b, extents[t].offset);
  }
  (layout_.block(b).updates_on_host ? host_math_ : device_.math()).adamw(tensors);
}

}  // namespace ferry
