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

ReadyList Executor::ready(StepList list) {
  ReadyList ready{.actions = std::move(list), .items = {}};
  const std::vector<EventId> ended = events_of(ready.actions);
  for (size_t i = 0; i < ready.actions.size(); ++i) {
    const Action& action = ready.actions[i];
    ready.items.push_back({.executor = this,
                           .action = &action,
                           .memory = is_pass(action.verb) ? memory_of(action) : PassMemory(),
                           .ended = ended[i]});
  }
  return ready;
}

PassMemory Executor::memory_of(const Action& action) const {
  PassMemory memory;
  memory.ports.resize(block(action.block).ports.size());
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
        case Role::value:
          memory.ports[bytes.port] = address;
          break;
        case Role::saved:
          memory.saved = address;
          break;
        case Role::saved_recomputed:
          memory.saved_recomputed = address;
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
        case Role::dead:
          break;
      }
    }
  return memory;
}

void Executor::prepare_updates() {
  updates_of_.resize(shape_.blocks.size());
  for (int b = 0; b < shape_.n_blocks(); ++b) {
    if (!layout_.block(b).is_trained) continue;
    std::vector<TensorExtent> trained;
    std::ranges::copy_if(block(b).tensors, std::back_inserter(trained), &TensorExtent::trainable);
    std::ranges::sort(trained, {}, &TensorExtent::offset);
    auto& [spans, gaps] = updates_of_[b];
    for (size_t t = 0; t < trained.size(); ++t) {
      const int64_t end = trained[t].offset + trained[t].n_elements;
      const int64_t next =
          t + 1 < trained.size() ? trained[t + 1].offset : block(b).n_trained_elements;
      FERRY_CHECK(end <= next, "{}: trained tensors up to {} of {}", block(b).name, end, next);
      if (end < next) gaps.push_back({end, next - end});
    }
    const int n_pieces = layout_.block(b).n_state_pieces;
    const ElementRange own = shape_.own_part(b);
    if (n_pieces == 0)
      spans.push_back(make_span(b, trained, {.begin = own.begin, .n_elements = own.n}));
    for (int piece = 0; piece < n_pieces; ++piece)
      spans.push_back(make_span(b, trained, state_record(shape_, b, piece)));
  }
}

Executor::SpanUpdate Executor::make_span(int b,
                                         std::span<const TensorExtent> trained,
                                         const StateRecord& record) const {
  SpanUpdate span = {.record = record};
  const int64_t span_end = record.begin + record.n_elements;
  const auto clip = [&](int64_t begin, int64_t n) {
    const int64_t from = std::max(begin, record.begin);
    return ElementRange{from - record.begin, std::min(begin + n, span_end) - from};
  };
  for (const TensorExtent& t : trained) {
    const ElementRange range = clip(t.offset, t.n_elements);
    if (range.n <= 0) continue;
    span.parts.push_back({.tensor_offset = t.offset, .group = t.group, .begin = range.begin});
    span.tensors.push_back({.grad_type = layout_.block(b).grad_type,
                            .weights_type = shape_.compute,
                            .n = range.n,
                            .optim = shape_.optim,
                            .split_master = shape_.split_master,
                            .first_element = record.begin + range.begin - t.offset});
  }
  // The weights are written as a whole: in a slot that held another block, or in a record of which
  // the update does not read them.
  const bool writes_all =
      layout_.block(b).sends_weights ||
      (layout_.block(b).reads_weights && record.update_bytes == record.states_bytes);
  for (const ElementRange& gap : updates_of_[b].gaps)
    if (const ElementRange range = clip(gap.begin, gap.n); writes_all && range.n > 0)
      span.gaps.push_back(range);
  return span;
}

std::byte* Executor::address_of(int b, Segment segment, int64_t element) const {
  return memory_.segment(b, segment) + element_bytes(shape_, b, segment, element, 0).offset;
}

// ---- Done in each step

void Executor::run(const Action& action, Updates& updates) {
  FERRY_CHECK(!is_pass(action.verb), "a pass without layer operations");
  switch (action.verb) {
    case Verb::gather_weights:
    case Verb::exchange_grads:
    case Verb::pass_value:
      exchange(action);
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
      if (span_of(action).has_changed) move(action);
      break;
    case Verb::commit:
      if (updates.commits) store_->extents().commit(updates.metadata);
      break;
    default:
      move(action);
  }
  poison_dead(action);
}

void Executor::poison_dead(const Action& action) {
  for (const Bytes& bytes : action.writes)
    if (bytes.role == Role::dead) device_.poison(at<std::byte>(bytes), bytes.n_bytes);
}

void Executor::move(const Action& action) {
  for (size_t i = 0; i < action.reads.size(); ++i)
    device_.copy(action.queue, at<std::byte>(action.writes[i]), at<std::byte>(action.reads[i]),
                 action.reads[i].n_bytes);
}

void Executor::begin_pass(const ReadyList::Item& item) {
  if (!item.memory.grads) return;
  // The norm goes over the whole prefix, and a slot holds another block's gradients before.
  const auto compute_bytes = static_cast<int64_t>(size_of(shape_.compute));
  for (const ElementRange& gap : updates_of_[item.action->block].gaps)
    device_.math().zero(item.memory.grads + gap.begin * compute_bytes, gap.n * compute_bytes);
}

void Executor::end_pass(const ReadyList::Item& item) {
  if (find(item.action->writes, Role::sum)) accumulate(*item.action);
  poison_dead(*item.action);
}

/** Copies the rank's own bytes; bytes of other ranks go through the link. */
void Executor::exchange(const Action& action) {
  const int self = shape_.ranks.rank, world = shape_.ranks.world;
  std::vector<std::span<const std::byte>> sends(static_cast<size_t>(world));
  std::vector<std::span<std::byte>> receives(sends.size());
  std::vector<const Bytes*> own;
  for (const Bytes& bytes : action.reads) {
    if (bytes.peer == self)
      own.push_back(&bytes);
    else
      sends[static_cast<size_t>(bytes.peer)] = {at<std::byte>(bytes),
                                                static_cast<size_t>(bytes.n_bytes)};
  }
  auto next = own.begin();
  for (const Bytes& bytes : action.writes) {
    if (bytes.role == Role::dead) continue;
    if (bytes.peer == self)
      device_.copy(action.queue, at<std::byte>(bytes), at<std::byte>(**next++), bytes.n_bytes);
    else
      receives[static_cast<size_t>(bytes.peer)] = {at<std::byte>(bytes),
                                                   static_cast<size_t>(bytes.n_bytes)};
  }
  link_->exchange(sends, receives, device_.collective_stream());
}

/** Gradients of one micro-batch, or of one for each replica in their order. */
void Executor::accumulate(const Action& action) {
  const Bytes& sum = *find(action.writes, Role::sum);
  bool is_first = !find(action.reads, Role::sum);
  const int64_t n = sum.n_bytes / static_cast<int64_t>(sizeof(float));
  const auto add = [&](const Bytes& grads) {
    // Ranks may exchange sums.
    const DType type = grads.n_bytes == sum.n_bytes ? DType::f32 : shape_.compute;
    math_of(action.queue).accumulate(at<float>(sum), at<std::byte>(grads), type, n, is_first);
    is_first = false;
  };
  if (!find(action.reads, Role::grads)) return add(*find(action.writes, Role::grads));
  for (const Bytes& bytes : action.reads)
    if (bytes.role == Role::grads) add(bytes);
}

void Executor::combine(const Action& action) {
  for (size_t i = 0; i < action.writes.size(); ++i)
    math_of(action.queue)
        .accumulate(at<float>(action.writes[i]), at<std::byte>(action.reads[i]), DType::f32,
                    action.reads[i].n_bytes / static_cast<int64_t>(sizeof(float)), false);
}

void Executor::square_sum(const Action& action) {
  const DType type = layout_.block(action.block).grad_type;
  const Bytes& grads = action.reads[0];
  const int64_t n = grads.n_bytes / static_cast<int64_t>(size_of(type));
  auto* const sums = at<double>(action.writes[0]);
  if (shape_.has_peers())
    math_of(action.queue).square_sum_chunks(at<std::byte>(grads), type, n, sums);
  else
    math_of(action.queue).square_sum(at<std::byte>(grads), type, n, sums);
}

double Executor::take_sums(const Action& action) {
  double loss = 0;
  for (const Bytes& bytes : action.reads)
    if (bytes.role == Role::loss)
      loss += static_cast<double>(*at<float>(bytes));
    else
      square_sums_[static_cast<size_t>(bytes.offset) / sizeof(double)] = *at<double>(bytes);
  return loss;
}

/** Chunks of a block follow each other from rank to rank. Micro-batches go over the replicas in
 * turn, and each part of the loss may be another stage's. The sums are added in the order of one
 * rank that has all. */
double Executor::take_sums_of_ranks(const Action& action) {
  const int n_blocks = shape_.n_blocks();
  std::vector<double> mine(static_cast<size_t>(loss_slot(shape_, shape_.n_micro_max, 0)));
  for (const Bytes& bytes : action.reads) {
    const auto slot = static_cast<size_t>(bytes.offset) / sizeof(double);
    if (bytes.role == Role::loss)
      mine[slot] = static_cast<double>(*at<float>(bytes));
    else
      std::memcpy(&mine[slot], at<double>(bytes), static_cast<size_t>(bytes.n_bytes));
  }
  const std::vector<std::vector<double>> all = link_->gather(mine);
  std::ranges::fill(square_sums_, 0.0);
  std::vector<size_t> next(all.size());  // by rank: the first sum of the block
  for (int b = 0; b < n_blocks; ++b)
    for (int rank = 0; rank < shape_.ranks.world; ++rank) {
      const auto r = static_cast<size_t>(rank);
      const auto n_chunks = static_cast<size_t>(simd::norm_chunks(shape_.part(b, rank).n));
      for (size_t i = 0; i < n_chunks; ++i)
        square_sums_[b] += all[r][next[r] + i];
      next[r] += n_chunks;
    }
  return sum_of_losses(all, next);
}

/** The losses of each rank begin at `first`, by rank. */
double Executor::sum_of_losses(const std::vector<std::vector<double>>& all,
                               const std::vector<size_t>& first) const {
  const Rounds rounds(shape_.ranks, n_micro_);
  std::vector<int> n_before(static_cast<size_t>(shape_.ranks.n_replicas()), 0);  // micro-batches
  double loss = 0;
  for (int round = 0; round < rounds.n(); ++round)
    for (int replica : rounds.present(round)) {
      const int micro = n_before[static_cast<size_t>(replica)]++;
      for (int b = 0; b < shape_.n_blocks(); ++b)
        if (block(b).has_loss) {
          const auto rank = static_cast<size_t>(shape_.ranks.rank_at(block(b).stage, replica));
          const int at = micro * shape_.n_losses() + shape_.loss_index(b);
          loss += all[rank][first[rank] + static_cast<size_t>(at)];
        }
    }
  return loss;
}

void Executor::decide(const Action& action, Updates& updates) {
  outcome_ = {};
  outcome_.loss = shape_.has_peers() ? take_sums_of_ranks(action) : take_sums(action);
  StepSums sums;
  for (int b = 0; b < shape_.n_blocks(); ++b)
    sums.has_finite_block |= shape_.is_trained(b) && std::isfinite(square_sums_[b]);
  outcome_.square_sum = sums.square_sum =
      simd::sum_in_order(square_sums_.data(), static_cast<int64_t>(square_sums_.size()));
  outcome_.decision = rule_.decide(sums);
  // Each block decides for itself where steps go ahead, the late ones as the early ones did.
  if (!updates.each_decides) updates.decision = outcome_.decision;
  updates.metadata = rule_.describe ? rule_.describe(outcome_) : std::string();
  updates.commits = rule_.commits;
}

bool Executor::changes_states(const Action& action, const Updates& updates) const {
  if (updates.decision.skip) return false;
  if (shape_.has_peers()) return !updates.each_decides || std::isfinite(square_sums_[action.block]);
  const Bytes* square_sum = find(action.reads, Role::square_sum);
  return !square_sum || std::isfinite(*at<double>(*square_sum));
}

void Executor::update(const Action& action, const Updates& updates) {
  span_of(action).has_changed = changes_states(action, updates);
  if (span_of(action).has_changed) apply(action, updates);
}

Executor::SpanAddresses Executor::addresses_of(const Action& action,
                                               const StateRecord& record) const {
  const int b = action.block;
  const BlockLayout& its = layout_.block(b);
  const auto of_action = [&](const std::vector<Bytes>& bytes, Role role) {
    return at<std::byte>(*find(bytes, role));
  };
  // A piece has its states, and what else its record holds, in the slot.
  std::byte* const slot = action.piece < 0 ? nullptr : of_action(action.writes, Role::states);
  const auto in_record = [&](bool is_there, const ByteRange& part, Segment segment) {
    return is_there ? slot + part.offset : address_of(b, segment, record.begin);
  };
  SpanAddresses out;
  out.grads = its.sends_weights ? of_action(action.reads, Role::grads)
                                : in_record(record.grads.n_bytes > 0, record.grads, Segment::grads);
  out.weights = its.sends_weights ? of_action(action.writes, Role::weights)
                                  : in_record(its.reads_weights, record.weights, Segment::weights);
  out.master = shape_.weights_are_master()
                   ? out.weights
                   : in_record(slot != nullptr, record.master, Segment::master);
  for (const Segment s : state_segments(shape_.optim)) {
    const size_t i = state_index(s);
    out.states[i] = in_record(slot != nullptr, record.states[i], s);
    out.exponents[i] = slot ? slot + record.exponents[i].offset
                            : memory_.segment(b, s) + exponents_offset(shape_, b);
  }
  return out;
}

void Executor::apply(const Action& action, const Updates& updates) {
  const int b = action.block;
  SpanUpdate& span = span_of(action);
  const SpanAddresses from = addresses_of(action, span.record);
  const auto element = [&](std::byte* begin, Segment segment, int64_t i) {
    return begin + bytes_of_elements(shape_, b, segment, i);
  };
  const bool has_exponents = simd::spec_of(shape_.optim).type == simd::StateType::block8;
  for (size_t t = 0; t < span.tensors.size(); ++t) {
    simd::UpdateArgs& tensor = span.tensors[t];
    const SpanUpdate::Part& part = span.parts[t];
    tensor.master = element(from.master, Segment::master, part.begin);
    tensor.weights =
        shape_.weights_are_master() ? nullptr : element(from.weights, Segment::weights, part.begin);
    tensor.grad = element(from.grads, Segment::grads, part.begin);
    for (const Segment s : state_segments(shape_.optim)) {
      const size_t i = state_index(s);
      tensor.states[i].values = element(from.states[i], s, part.begin);
      if (has_exponents)
        tensor.states[i].exponents =
            reinterpret_cast<uint8_t*>(from.exponents[i]) + part.begin / simd::kStateBlock;
    }
    tensor.step = updates.decision.steps.at(static_cast<size_t>(part.group));
    tensor.noise_key = simd::noise_key(tensor.step, b, part.tensor_offset);
  }
  DeviceMath& math = math_of(action.queue);
  math.update(span.tensors);
  for (const ElementRange& gap : span.gaps)
    math.zero(element(from.weights, Segment::weights, gap.begin),
              bytes_of_elements(shape_, b, Segment::weights, gap.n));
  // A record has a copy of weights in memory that hold some of the master.
  const ByteRange& copy = span.record.weights;
  if (copy.n_bytes > 0 && !layout_.block(b).reads_weights)
    std::memcpy(at<std::byte>(*find(action.writes, Role::states)) + copy.offset, from.weights,
                static_cast<size_t>(copy.n_bytes));
}

void Executor::fetch_states(const Action& action) {
  store_->read(action.block, action.piece, at<std::byte>(action.writes.front()));
}

void Executor::send_states(const Action& action) {
  if (!span_of(action).has_changed) return;
  store_->write(action.block, action.piece, at<std::byte>(*find(action.reads, Role::states)));
}

}  // namespace ferry
