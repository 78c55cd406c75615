#include "offload/step/gradient_actions.h"

#include <algorithm>

#include "offload/step/state_pieces.h"

namespace ferry {

GradientActions::GradientActions(const StepShape& shape,
                                 const Layout& layout,
                                 ListDraft& draft,
                                 std::span<const BlockPass> passes,
                                 const Rounds& rounds,
                                 UpdateOrder order,
                                 bool each_decides)
    : shape_(shape),
      layout_(layout),
      draft_(draft),
      passes_(passes),
      rounds_(rounds),
      order_(order),
      each_decides_(each_decides || order == UpdateOrder::as_grads_arrive),
      is_vertical_(shape.order == AccumulationOrder::vertical),
      n_passes_(static_cast<int>(passes.size())),
      grads_(layout.grad_slots, backwards_of_blocks(passes)),
      updated_(shape.blocks.size(), false),
      has_written_(shape.blocks.size(), false) {
  for (int b : drive_blocks(passes))
    for (int piece = 0; piece < block(b).n_state_pieces; ++piece)
      pieces_.push_back({b, piece});
}

std::vector<std::vector<int>> GradientActions::backwards_of_blocks(
    std::span<const BlockPass> passes) const {
  std::vector<std::vector<int>> backwards(shape_.blocks.size());
  for (size_t t = 0; t < passes.size(); ++t)
    if (passes[t].backward)
      backwards[static_cast<size_t>(passes[t].block)].push_back(static_cast<int>(t));
  // Behind the blocks are the gradients of a pass, of which some wait.
  backwards.resize(backwards.size() + passes.size());
  for (size_t t = 0; t < passes.size(); ++t)
    if (passes[t].ran_in >= 0)
      backwards[shape_.blocks.size() + static_cast<size_t>(passes[t].ran_in)] = {
          static_cast<int>(t)};
  return backwards;
}

void GradientActions::after_backward(int b, int micro, bool is_last, RegionId at) {
  if (!uses_slot(b) || !block(b).has_grads || (is_vertical_ && !is_last)) return;
  // The final sum passes through the device: its norm is taken there, without a pass over host
  // memory.
  if (is_last && norm_on_device(b) && block(b).is_trained)
    square_sum(b, QueueId::compute, at, layout_.step_sums);
  block(b).writes_grads_to_drive ? write_to_drive(b, at) : send_grads(b, micro, at);
  if (is_last) update_as_grads_arrive(b);
}

void GradientActions::finish(int n_micro, const WeightSlot& weight_slot) {
  combine_tied();
  square_sums();
  send_step_sums();
  fill_state_slots();
  decide(n_micro);
  update_in_need_order(weight_slot);
  if (pieces_.empty()) return;
  draft_.add({.verb = Verb::commit, .queue = QueueId::nvme_write});
}

RegionId GradientActions::choose_place(Action& run, int t) {
  const int b = run.block;
  if (!block(b).has_grads) return -1;
  const RegionId at = uses_slot(b) ? grads_.region(grad_slot_ = grad_slot(b, t))
                                   : layout_.segment(b, Segment::grads);
  if (!block(b).sums_on_device || !sums_own()) {
    put(run.writes, at, 0, grad_bytes(b), Role::grads);
    return at;
  }
  put(run.writes, layout_.grad_temp, 0, grad_bytes(b), Role::grads);
  if (run.micro > 0) put(run.reads, at, 0, sum_bytes(b), Role::sum);
  put(run.writes, at, 0, sum_bytes(b), Role::sum);
  draft_.release(run, layout_.grad_temp);
  return at;
}
/** Vertical: the sum stays in its slot through all micro-batches. Horizontal, and where each
 * micro-batch's leave for other ranks: they leave it. */
int GradientActions::grad_slot(int b, int t) {
  const int item = is_vertical_ && sums_own() ? b : shape_.n_blocks() + t;
  const int slot = grads_.find(item);
  return slot >= 0 ? slot : grads_.take(item, t).slot;
}

void GradientActions::send_grads(int b, int micro, RegionId slot) {
  const bool is_staged = block(b).sums_on_host;
  const RegionId to = is_staged ? layout_.grad_staging[static_cast<size_t>(grad_slot_)]
                                : layout_.segment(b, Segment::grads);
  const int64_t n_bytes = is_staged ? grad_bytes(b) : sum_bytes(b);
  if (is_vertical_) micro = -1;
  Action send{.verb = Verb::send_grads, .queue = QueueId::d2h, .block = b, .micro = micro};
  move_sum(b, send);
  draft_.add_move(std::move(send), {slot, 0, n_bytes}, {to, 0, n_bytes}, slot);
  if (!is_staged) return;
  Action sum{.verb = Verb::accumulate, .queue = QueueId::host, .block = b, .micro = micro};
  const RegionId home = layout_.segment(b, Segment::grads);
  put(sum.reads, to, 0, n_bytes, Role::grads);
  if (micro > 0) put(sum.reads, home, 0, sum_bytes(b), Role::sum);
  put(sum.writes, home, 0, sum_bytes(b), Role::sum);
  draft_.release(sum, to);
  draft_.add(std::move(sum));
}

void GradientActions::exchange(int b, RegionId at, int round) {
  if (!block(b).has_grads) return;
  const bool is_last = round + 1 == rounds_.n();
  if (!shape_.exchanges_sums())
    receive_parts(b, at, {round, rounds_.present(round), round == 0, is_last});
  else if (is_last)
    receive_parts(b, at, {0, rounds_.present_by(round), true, true});
}
void GradientActions::take_parts(int b, int t) {
  if (!block(b).has_grads) return;
  const BlockPass& pass = passes_[static_cast<size_t>(t)];
  grad_slot_ = grad_slot(b, t);
  const bool has_sum = shape_.exchanges_sums() && pass.micro > 0;
  exchange(b, has_sum ? grads_.region(grad_slot_) : -1, pass.round);
}

void GradientActions::give(int b, int t) {
  if (!block(b).has_grads) return;
  const BlockPass& pass = passes_[static_cast<size_t>(t)];
  grad_slot_ = grads_.find(shape_.n_blocks() + pass.ran_in);
  grads_.use(grad_slot_, t);
  exchange(b, grads_.region(grad_slot_), pass.round);
}

/** One action for the block's own gradients, and one for each tensor that it borrows. */
void GradientActions::receive_parts(int b, RegionId slot, const Parts& parts_of) {
  const auto width = static_cast<int64_t>(size_of(shape_.exchanged_type()));
  const int self = shape_.ranks.rank, world = shape_.ranks.world;
  // A rank may have a part of no block.
  const RegionId parts =
      layout_.grad_parts.empty() ? -1 : layout_.grad_parts[static_cast<size_t>(grad_slot_)];
  const int64_t n_part = shape_.n_part_grad_elements(b, self);
  const int n_borrowed = static_cast<int>(shape_of(b).borrowed.size());
  for (int i = -1; i < n_borrowed; ++i) {
    if (i >= 0 && !shape_.borrowed_tensor(b, i).trainable) continue;
    Action action{.verb = Verb::exchange_grads,
                  .queue = QueueId::collective,
                  .block = b,
                  .micro = parts_of.round};
    const auto add = [](std::vector<Bytes>& to, Bytes bytes) {
      if (bytes.n_bytes > 0) to.push_back(bytes);
    };
    // The elements of a rank's part in the slot, and in what the rank gets of each rank.
    const auto in_slot = [&](int rank) -> ElementRange {
      if (i < 0) return shape_.part(b, rank);
      const ElementRange range = shape_.borrowed_part(b, i, rank);
      return {shape_.borrowed_in_grads(b, i) + range.begin - shape_.borrowed_tensor(b, i).offset,
              range.n};
    };
    const int64_t in_part = i < 0 ? 0 : shape_.borrowed_in_part(b, i, self);
    for (int rank = 0; rank < world; ++rank) {
      if (const ElementRange range = in_slot(rank); slot >= 0)
        add(action.reads, {slot, range.begin * width, range.n * width, Role::moved, -1, rank});
    }
    for (size_t n = 0; n < parts_of.from.size(); ++n)
      add(action.writes,
          {parts, (static_cast<int64_t>(n) * n_part + in_part) * width, in_slot(self).n * width,
           Role::moved, -1, shape_.ranks.rank_at(shape_.ranks.stage(), parts_of.from[n])});
    if (i + 1 == n_borrowed && slot >= 0) draft_.release(action, slot);
    draft_.add(std::move(action));
  }
  if (n_part > 0) add_parts(b, parts_of);
}

void GradientActions::add_parts(int b, const Parts& parts) {
  const auto n_present = static_cast<int64_t>(parts.from.size());
  const auto slot = static_cast<size_t>(grad_slot_);
  const int64_t part_bytes = shape_.n_part_grad_elements(b, shape_.ranks.rank) *
                             static_cast<int64_t>(size_of(shape_.exchanged_type()));
  const int64_t sum_bytes = segment_bytes(shape_, b, Segment::grads);
  const RegionId home = layout_.segment(b, Segment::grads);
  const bool sums_on_host = block(b).sums_on_host;
  const bool leaves = block(b).grads_on_host && !sums_on_host;
  RegionId from = layout_.grad_parts[slot];
  if (sums_on_host) {
    from = layout_.grad_staging[slot];
    draft_.add_move(
        {.verb = Verb::send_grads, .queue = QueueId::d2h, .block = b, .micro = parts.round},
        {layout_.grad_parts[slot], 0, n_present * part_bytes}, {from, 0, n_present * part_bytes},
        layout_.grad_parts[slot]);
  }
  if (leaves && parts.are_first) ++n_sums_;
  const RegionId to = leaves ? layout_.grad_sums[n_sums_ % layout_.grad_sums.size()] : home;
  Action sum{.verb = Verb::accumulate,
             .queue = sums_on_host ? QueueId::host : QueueId::compute,
             .block = b,
             .micro = parts.round};
  for (int64_t n = 0; n < n_present; ++n)
    put(sum.reads, from, n * part_bytes, part_bytes, Role::grads);
  if (!parts.are_first) put(sum.reads, to, 0, sum_bytes, Role::sum);
  put(sum.writes, to, 0, sum_bytes, Role::sum);
  draft_.release(sum, from);
  draft_.add(std::move(sum));
  if (!leaves || !parts.are_last) return;
  if (norm_on_device(b) && shape_.updates_part(b))
    square_sum(b, QueueId::compute, to, layout_.step_sums);
  draft_.add_move({.verb = Verb::send_grads, .queue = QueueId::d2h, .block = b}, {to, 0, sum_bytes},
                  {home, 0, sum_bytes}, to);
}

/** The update that follows asks whether they are finite; the step's sums come too late for it. */
void GradientActions::move_sum(int b, Action& send) const {
  if (!each_decides_ || shape_.has_peers() || !block(b).is_trained || !norm_on_device(b)) return;
  put(send.reads, layout_.step_sums, step_sum_offset(b), kSum_bytes, Role::moved);
  put(send.writes, layout_.arrived_sums, step_sum_offset(b), kSum_bytes, Role::moved);
}

/** Piece by piece through windows of the host, or from the slot itself where that lies there. */
void GradientActions::write_to_drive(int b, RegionId slot) {
  for (int piece = 0; piece < block(b).n_state_pieces; ++piece) {
    const StateRecord record = state_record(shape_, b, piece);
    const RegionId releases = piece + 1 < block(b).n_state_pieces ? -1 : slot;
    const ByteRange range =
        element_bytes(shape_, b, Segment::grads, record.begin, record.n_elements);
    const Bytes from = {slot, range.offset, range.n_bytes, Role::moved};
    if (shape_.computes_on_host) {
      write_piece(b, piece, from, releases);
      continue;
    }
    const RegionId window = layout_.grad_windows[n_windows_++ % layout_.grad_windows.size()];
    Action send{.verb = Verb::send_grads, .queue = QueueId::d2h, .block = b, .piece = piece};
    if (piece == 0) move_sum(b, send);
    const Bytes to = {window, 0, range.n_bytes, Role::moved};
    draft_.add_move(std::move(send), from, to, releases);
    write_piece(b, piece, to, window);
  }
  has_written_[static_cast<size_t>(b)] = true;
  read_grads();
}
void GradientActions::write_piece(int b, int piece, Bytes from, RegionId releases) {
  Action write{.verb = Verb::write_grads, .queue = QueueId::nvme_write, .block = b, .piece = piece};
  const StateRecord record = state_record(shape_, b, piece);
  from.role = Role::grads;
  write.reads.push_back(from);
  put(write.writes, layout_.segment(b, Segment::grads),
      element_bytes(shape_, b, Segment::grads, record.begin, 0).offset, from.n_bytes, Role::grads);
  draft_.release(write, releases);
  draft_.add(std::move(write));
}

void GradientActions::combine_tied() {
  for (int user = 0; user < shape_.n_blocks(); ++user) {
    Action together = combine_of(user, block(user).grads_on_host);
    for (int i = 0; i < static_cast<int>(shape_of(user).borrowed.size()); ++i) {
      const TensorExtent& tensor = shape_.borrowed_tensor(user, i);
      if (!tensor.trainable) continue;
      const int owner = shape_of(user).borrowed[i].block, self = shape_.ranks.rank;
      const ElementRange part = shape_.borrowed_part(user, i, self);
      const int64_t n_bytes = part.n * kSum_element_bytes;
      if (n_bytes == 0) continue;
      const Bytes use = {layout_.segment(user, Segment::grads),
                         shape_.borrowed_in_part(user, i, self) * kSum_element_bytes, n_bytes,
                         Role::grads};
      const Bytes sum = {layout_.segment(owner, Segment::grads),
                         (part.begin - shape_.own_part(owner).begin) * kSum_element_bytes, n_bytes,
                         Role::sum};
      if (block(owner).grads_on_host == block(user).grads_on_host) {
        together.reads.push_back(use);
        together.writes.push_back(sum);
      } else {
        combine_across(user, use, sum, block(owner).grads_on_host);
      }
    }
    add_combine(std::move(together));
  }
}

Action GradientActions::combine_of(int user, bool is_on_host) {
  return {
      .verb = Verb::combine, .queue = is_on_host ? QueueId::host : QueueId::compute, .block = user};
}

void GradientActions::add_combine(Action combine) {
  // Their sums are read as well.
  combine.reads.insert(combine.reads.end(), combine.writes.begin(), combine.writes.end());
  if (!combine.writes.empty()) draft_.add(std::move(combine));
}

/** The use's gradient goes to the memory of the sum first. */
void GradientActions::combine_across(int user, Bytes use, const Bytes& sum, bool to_host) {
  const RegionId there = to_host ? layout_.borrowed_on_host : layout_.borrowed_on_device;
  const Bytes moved = {there, 0, use.n_bytes, Role::grads};
  use.role = Role::moved;
  draft_.add_move({.verb = to_host ? Verb::send_grads : Verb::fetch_grads,
                   .queue = to_host ? QueueId::d2h : QueueId::h2d,
                   .block = user},
                  use, {there, 0, use.n_bytes, Role::moved});
  Action combine = combine_of(user, to_host);
  combine.reads = {moved};
  combine.writes = {sum};
  add_combine(std::move(combine));
}

void GradientActions::square_sum(int b, QueueId queue, RegionId grads, RegionId sums) {
  Action sum{.verb = Verb::square_sum, .queue = queue, .block = b};
  put(sum.reads, grads, 0, trained_bytes(b, Segment::grads, shape_.own_part(b).n), Role::grads);
  const int64_t offset = step_sum_offset(sum_slot(shape_, b)),
                n_bytes = n_sum_slots(shape_, b) * kSum_bytes;
  put(sum.writes, sums, offset, n_bytes, Role::square_sum);
  square_sums_.push_back({queue == QueueId::compute ? layout_.step_sums_on_host : sums, offset,
                          n_bytes, Role::square_sum});
  draft_.add(std::move(sum));
}
void GradientActions::square_sums() {
  for (int b = 0; b < shape_.n_blocks(); ++b) {
    if (!shape_.updates_part(b)) continue;
    const RegionId grads = layout_.segment(b, Segment::grads);
    if (!block(b).grads_on_host && !block(b).writes_grads_to_drive)
      square_sum(b, QueueId::compute, grads, layout_.step_sums);
    else if (!norm_on_device(b) && !updated_[b])  // else taken on the way
      square_sum(b, QueueId::host, grads, layout_.arrived_sums);
  }
}

void GradientActions::send_step_sums() {
  const int64_t n_bytes = step_sums_bytes(shape_);
  Action send{.verb = Verb::send_step_sums, .queue = QueueId::d2h};
  // Whoever has the sums of an evaluation has sent its values, too.
  if (shape_.deals_blocks())
    send.after.push_back(draft_.last()[static_cast<size_t>(QueueId::collective)]);
  draft_.add_move(std::move(send), {layout_.step_sums, 0, n_bytes},
                  {layout_.step_sums_on_host, 0, n_bytes});
}

/** Waits for the norm's parts and for all else of the step: what follows may use each slot as
 * new. */
void GradientActions::decide(int n_micro) {
  Action decide{.verb = Verb::decide, .queue = QueueId::decision};
  decide.reads = square_sums_;
  for (int micro = 0; micro < n_micro; ++micro)
    for (int b = 0; b < shape_.n_blocks(); ++b)
      if (shape_of(b).has_loss && shape_.runs(b))
        put(decide.reads, layout_.step_sums_on_host,
            step_sum_offset(loss_slot(shape_, micro, shape_.loss_index(b))), kSum_bytes,
            Role::loss);
  decide.after.assign(draft_.last().begin(), draft_.last().end());
  decide_ = draft_.add(std::move(decide));
}

/** The block's weights are not read any more in this step: its backward has. */
void GradientActions::update_as_grads_arrive(int b) {
  if (!updates_early(b)) return;
  if (!norm_on_device(b))
    square_sum(b, QueueId::host, layout_.segment(b, Segment::grads), layout_.arrived_sums);
  update(b);
}
void GradientActions::update_in_need_order(const WeightSlot& weight_slot) {
  for (int b = 0; b < shape_.n_blocks(); ++b) {
    if (!shape_.updates_part(b) || updated_[b]) continue;
    const RegionId slot = block(b).sends_weights ? weight_slot(b) : -1;
    update(b, slot);
    if (slot >= 0) send_weights(b, slot);
  }
}
void GradientActions::update(int b, RegionId slot) {
  updated_[b] = true;
  if (block(b).n_state_pieces > 0) return update_pieces(b);
  const bool is_master = shape_.weights_are_master();
  const int64_t n_elements = shape_.own_part(b).n;
  const RegionId home = layout_.segment(b, Segment::grads);
  const RegionId grads = slot >= 0 && block(b).grads_on_host ? fetch_grads(b) : home;
  Action update = update_of(b);
  put(update.reads, grads, 0, trained_bytes(b, Segment::grads, n_elements), Role::grads);
  if (!is_master || slot < 0)
    put(update.writes, layout_.segment(b, Segment::master), 0,
        trained_bytes(b, Segment::master, n_elements), Role::states);
  for (const Segment s : state_segments(shape_.optim))
    put(update.writes, layout_.segment(b, s), 0, segment_bytes(shape_, b, s), Role::states);
  update.reads.insert(update.reads.end(), update.writes.begin(), update.writes.end());
  if (!is_master || slot >= 0) {
    put(update.writes, slot >= 0 ? slot : layout_.segment(b, Segment::weights), 0,
        trained_bytes(b, Segment::weights, n_elements), Role::weights);
    if (is_master || shape_.split_master) update.reads.push_back(update.writes.back());
  }
  if (grads != home) draft_.release(update, grads);
  draft_.add(std::move(update));
}
RegionId GradientActions::fetch_grads(int b) {
  const int t = n_passes_ + b;  // updates come after the passes
  const RegionId slot = grads_.region(grads_.take(shape_.n_blocks() + t, t).slot);
  const int64_t n_bytes = trained_bytes(b, Segment::grads, shape_of(b).n_trained_elements);
  draft_.add_move({.verb = Verb::fetch_grads, .queue = QueueId::h2d, .block = b},
                  {layout_.segment(b, Segment::grads), 0, n_bytes}, {slot, 0, n_bytes});
  return slot;
}
void GradientActions::send_weights(int b, RegionId slot) {
  const int64_t n_bytes = trained_bytes(b, Segment::weights, shape_of(b).n_trained_elements);
  draft_.add_move({.verb = Verb::send_weights, .queue = QueueId::d2h, .block = b},
                  {slot, 0, n_bytes}, {layout_.segment(b, Segment::weights), 0, n_bytes}, slot);
}
Action GradientActions::update_of(int b) const {
  Action update{.verb = Verb::update,
                .queue = block(b).updates_on_host ? QueueId::host : QueueId::compute,
                .block = b};
  if (decide_ >= 0) update.after.push_back(decide_);
  if (each_decides_ && !shape_.has_peers())
    put(update.reads, block(b).grads_reach_host ? layout_.arrived_sums : layout_.step_sums_on_host,
        step_sum_offset(b), kSum_bytes, Role::square_sum);
  return update;
}

// ---- States on a drive: reads run ahead of the updates by as many pieces as there are slots, and
// writes behind them.

std::vector<int> GradientActions::drive_blocks(std::span<const BlockPass> passes) const {
  std::vector<int> blocks;
  const auto add = [&](int b) {
    if (block(b).n_state_pieces > 0 && std::ranges::find(blocks, b) == blocks.end())
      blocks.push_back(b);
  };
  // Early updates follow the last backward of a block.
  std::vector<int> last_first;
  for (size_t t = passes.size(); t-- > 0;)
    if (passes[t].backward && std::ranges::find(last_first, passes[t].block) == last_first.end())
      last_first.push_back(passes[t].block);
  for (size_t i = last_first.size(); i-- > 0;)
    if (updates_early(last_first[i])) add(last_first[i]);
  for (int b = 0; b < shape_.n_blocks(); ++b)
    add(b);
  return blocks;
}

void GradientActions::fill_state_slots() {
  while (n_fetched_ < std::min(pieces_.size(), layout_.state_slots.size()))
    fetch_next_piece();
}
void GradientActions::fetch_next_piece() {
  if (n_fetched_ == pieces_.size()) return;
  const auto [b, piece] = pieces_[n_fetched_];
  Action fetch{.verb = Verb::fetch_states, .queue = QueueId::nvme_read, .block = b, .piece = piece};
  const RegionId slot = layout_.state_slots[n_fetched_ % layout_.state_slots.size()];
  put(fetch.writes, slot, 0, state_record(shape_, b, piece).update_bytes, Role::states);
  fetch.after_commit = n_fetched_ == 0;
  ++n_fetched_;
  draft_.add(std::move(fetch));
  read_grads();
}

void GradientActions::read_grads() {
  for (; n_grads_read_ < n_fetched_; ++n_grads_read_) {
    const auto [b, piece] = pieces_[n_grads_read_];
    if (!block(b).writes_grads_to_drive) continue;
    if (!has_written_[static_cast<size_t>(b)]) return;
    const StateRecord record = state_record(shape_, b, piece);
    Action read{.verb = Verb::read_grads, .queue = QueueId::nvme_read, .block = b, .piece = piece};
    put(read.reads, layout_.segment(b, Segment::grads),
        element_bytes(shape_, b, Segment::grads, record.begin, 0).offset, record.grads.n_bytes,
        Role::grads);
    put(read.writes, layout_.state_slots[n_grads_read_ % layout_.state_slots.size()],
        record.grads.offset, record.grads_bytes(), Role::grads);
    draft_.add(std::move(read));
  }
}

void GradientActions::update_pieces(int b) {
  fill_state_slots();
  const auto first = std::ranges::find(pieces_, b, &StatePiece::block) - pieces_.begin();
  for (int piece = 0; piece < block(b).n_state_pieces; ++piece) {
    const auto slot = static_cast<size_t>(first + piece) % layout_.state_slots.size();
    update_piece(b, piece, layout_.state_slots[slot]);
    fetch_next_piece();
  }
}
void GradientActions::update_piece(int b, int piece, RegionId slot) {
  const StateRecord record = state_record(shape_, b, piece);
  const auto of_segment = [&](std::vector<Bytes>& to, Segment s, Role role) {
    const ByteRange range = element_bytes(shape_, b, s, record.begin, record.n_elements);
    put(to, layout_.segment(b, s), range.offset, range.n_bytes, role);
  };
  Action update = update_of(b);
  update.piece = piece;
  if (block(b).writes_grads_to_drive)
    put(update.reads, slot, record.grads.offset, record.grads.n_bytes, Role::grads);
  else
    of_segment(update.reads, Segment::grads, Role::grads);
  put(update.reads, slot, 0, record.update_bytes, Role::states);
  put(update.writes, slot, 0, record.n_bytes, Role::states);
  if (!block(b).reads_weights) {
    of_segment(update.writes, Segment::weights, Role::weights);
    if (stores_weights(shape_, b)) of_segment(update.reads, Segment::weights, Role::weights);
  }
  Action send{.verb = Verb::send_states, .queue = QueueId::nvme_write, .block = b, .piece = piece};
  put(send.reads, slot, 0, record.n_bytes, Role::states);
  draft_.release(send, slot);
  draft_.add(std::move(update));
  draft_.add(std::move(send));
}

}  // namespace ferry
