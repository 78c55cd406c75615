#include "offload/step/pager.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "offload/step/passes.h"
#include "offload/step/slot_pool.h"
#include "offload/step/touches.h"
#include "offload/step/value_slots.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Builds a list pass by pass. */
class ListMaker {
 public:
  ListMaker(const StepShape& shape, const Layout& layout, int n_micro, bool trains)
      : shape_(shape),
        layout_(layout),
        n_micro_(n_micro),
        trains_(trains),
        is_vertical_(shape.order == AccumulationOrder::vertical),
        compute_bytes_(static_cast<int64_t>(size_of(shape.compute))),
        passes_(passes_of(shape, n_micro, trains)),
        touches_(layout.regions.size()),
        weights_(layout.weight_slots, passes_by_block(/*backward_alone=*/false)),
        grads_(layout.grad_slots, passes_by_block(/*backward_alone=*/true)),
        saved_(layout.saved_slots),
        values_(shape, layout, passes_, n_micro),
        updated_(shape.blocks.size(), false),
        fetched_before_(shape.blocks.size(), false) {}

  StepList training(UpdateOrder order, bool each_decides) {
    order_ = order;
    each_decides_ = each_decides || order == UpdateOrder::as_grads_arrive;
    list_.reserve(4 * passes_.size());
    fetch_batches();
    for (t_ = 0; t_ < passes_.size(); ++t_)
      pass().backward ? backward() : forward();
    combine_tied();
    square_sums();
    send_step_sums();
    decide();
    update_in_need_order();
    return std::move(list_);
  }

  StepList evaluation(bool fetches_own_slots) {
    fetches_own_slots_ = fetches_own_slots;
    fetch_batches();
    for (t_ = 0; t_ < passes_.size(); ++t_)
      forward();
    send_step_sums();
    return std::move(list_);
  }

 private:
  // ---- What the list is made of

  int add(Action action) {
    touches_.order(action);
    list_.push_back(std::move(action));
    const int index = static_cast<int>(list_.size()) - 1;
    if (list_.back().verb != Verb::update) last_[static_cast<size_t>(list_.back().queue)] = index;
    return index;
  }
  /** One copy, of bytes whose uses on both sides are no one's business. */
  Action move_of(Verb verb, QueueId queue, int block, int micro, Bytes from, Bytes to) const {
    FERRY_CHECK(from.region >= 0 && to.region >= 0 && from.n_bytes == to.n_bytes,
                "{} of {} bytes to {} has no room", name_of(verb), from.n_bytes, to.n_bytes);
    return {.verb = verb,
            .queue = queue,
            .block = block,
            .micro = micro,
            .reads = {from},
            .writes = {to}};
  }
  /** Appends the bytes, if there are any. */
  static void put(std::vector<Bytes>& to, RegionId region, int64_t offset, int64_t n, Role role) {
    if (region >= 0 && n > 0) to.push_back({region, offset, n, role});
  }
  int64_t size_of_region(RegionId region) const {
    return region < 0 ? 0 : layout_.region(region).n_bytes;
  }
  void release(Action& action, RegionId region) const {
    put(action.writes, region, 0, size_of_region(region), Role::released);
  }

  const BlockPass& pass() const { return passes_[t_]; }
  int pass_number() const { return static_cast<int>(t_); }
  const BlockShape& shape_of(int b) const { return shape_.blocks[static_cast<size_t>(b)]; }
  const BlockLayout& block(int b) const { return layout_.block(b); }
  int lane(int micro) const { return shape_.n_live() == 1 ? 0 : micro; }
  size_t of_block(int b, int micro) const {
    return static_cast<size_t>(b * shape_.n_live() + lane(micro));
  }

  std::vector<std::vector<int>> passes_by_block(bool backward_alone) const {
    std::vector<std::vector<int>> passes(shape_.blocks.size());
    for (size_t t = 0; t < passes_.size(); ++t)
      if (passes_[t].backward || !backward_alone)
        passes[static_cast<size_t>(passes_[t].block)].push_back(static_cast<int>(t));
    return passes;
  }

  // ---- Weights

  void read_weights(Action& run) {
    const int b = run.block;
    const bool in_slot = block(b).streams || block(b).own_slot >= 0;
    const RegionId at = in_slot ? weight_slot(b) : layout_.segment(b, Segment::weights);
    put(run.reads, at, 0, shape_of(b).n_elements * compute_bytes_, Role::weights);
    for_borrowed(b, [&](int i, const Bytes& home) {
      if (in_slot)
        put(run.reads, at, shape_.borrowed_in_slot(b, i) * compute_bytes_, home.n_bytes,
            Role::borrowed);
      else
        run.reads.push_back(home);
    });
  }
  /** Each tensor that the block borrows, where its owner keeps it. */
  template <class Each>
  void for_borrowed(int b, Each&& each) const {
    for (int i = 0; i < static_cast<int>(shape_of(b).borrowed.size()); ++i) {
      const TensorExtent& tensor = shape_.borrowed_tensor(b, i);
      const int owner = shape_of(b).borrowed[static_cast<size_t>(i)].block;
      each(i, Bytes{layout_.segment(owner, Segment::weights), tensor.offset * compute_bytes_,
                    tensor.n_elements * compute_bytes_, Role::borrowed});
    }
  }

  /** The slot with the block's weights, which are fetched where they are not there. */
  RegionId weight_slot(int b) {
    if (const RegionId own = block(b).own_slot; own >= 0) {
      if (!fetched_before_[static_cast<size_t>(b)] && fetches_own_slots_) fetch_weights(b, own, -1);
      return own;
    }
    if (const int slot = weights_.find(b); slot >= 0) {
      weights_.use(slot, pass_number());
      return weights_.region(slot);
    }
    const auto [slot, evicted] = weights_.take(b, pass_number());
    const RegionId at = weights_.region(slot);
    if (evicted >= 0) release(list_[static_cast<size_t>(touches_.last_use(at))], at);
    fetch_weights(b, at, is_vertical_ ? -1 : pass().micro);
    return at;
  }
  void fetch_weights(int b, RegionId at, int micro) {
    Action fetch{.verb = Verb::fetch_weights, .queue = QueueId::h2d, .block = b, .micro = micro};
    const int64_t n_bytes = shape_of(b).n_elements * compute_bytes_;
    put(fetch.reads, layout_.segment(b, Segment::weights), 0, n_bytes, Role::moved);
    put(fetch.writes, at, 0, n_bytes, Role::moved);
    for_borrowed(b, [&](int i, const Bytes& home) {
      put(fetch.reads, home.region, home.offset, home.n_bytes, Role::moved);
      put(fetch.writes, at, shape_.borrowed_in_slot(b, i) * compute_bytes_, home.n_bytes,
          Role::moved);
    });
    if (!fetched_before_[static_cast<size_t>(b)]) {  // later fetches follow this one
      fetched_before_[static_cast<size_t>(b)] = true;
      fetch.after_update.push_back(b);
      for (const BorrowedExtent& borrowed : shape_of(b).borrowed)
        fetch.after_update.push_back(borrowed.block);
    }
    add(std::move(fetch));
  }

  // ---- Values between blocks

  int64_t value_bytes(int value) const { return shape_.values[static_cast<size_t>(value)].n_bytes; }
  Bytes value_on_host(int value) const {
    return {layout_.values_on_host[of_block(value, pass().micro)], 0, value_bytes(value)};
  }

  void read_values(const std::vector<int>& values, Role role, Action& run) {
    for (int v : values) {
      const auto [at, is_there] = values_.find(v);
      if (!is_there)
        add(move_of(Verb::fetch_layer_input, QueueId::h2d, writer_of(v), run.micro,
                    value_on_host(v), {at, 0, value_bytes(v)}));
      put(run.reads, at, 0, value_bytes(v), role);
      if (!values_.is_needed_later(v)) release(run, at);
    }
  }
  void write_values(const std::vector<int>& values, Role role, Action& run) {
    for (int v : values)
      put(run.writes, values_.find(v).region, 0, value_bytes(v), role);
  }
  void send_values_that_leave() {
    const auto [is_backward, b, micro] = pass();
    for (int v : shape_of(b).values.outputs)
      if (values_.leaves(v))
        add(move_of(Verb::send_layer_input, QueueId::d2h, b, micro,
                    {values_.find(v).region, 0, value_bytes(v)}, value_on_host(v)));
  }
  /** The block whose forward writes the value. */
  int writer_of(int value) const {
    for (int b = 0; b < shape_.n_blocks(); ++b)
      if (std::ranges::find(shape_of(b).values.outputs, value) != shape_of(b).values.outputs.end())
        return b;
    return -1;
  }

  // ---- Activations

  struct SavedAt {
    RegionId kept = -1, recomputed = -1;
  };
  /** Where a pass of the block finds or leaves its activations; kept ones in the slot, if there is
   * one. */
  SavedAt saved_at(const Action& run, RegionId slot) const {
    const RegionId kept = layout_.saved[of_block(run.block, run.micro)];
    if (slot >= 0) return {.kept = slot};
    if (kept < 0) {
      // Nobody reads what an evaluation saves: any slot will do.
      const bool goes_to_host = layout_.saved_on_host[of_block(run.block, run.micro)] >= 0;
      return {.kept = goes_to_host ? layout_.saved_slots[0] : layout_.saved_recomputed};
    }
    if (shape_of(run.block).activations != Activations::selective) return {.kept = kept};
    return {.kept = kept, .recomputed = layout_.saved_recomputed};
  }
  void put_saved(std::vector<Bytes>& to, const Action& run, const SavedAt& at) const {
    const BlockShape& shape = shape_of(run.block);
    const int64_t apart = at.recomputed >= 0 ? shape.saved_recomputed_bytes : 0;
    put(to, at.kept, 0, shape.saved_bytes - apart, Role::saved);
    put(to, at.recomputed, 0, apart, Role::saved_recomputed);
  }
  RegionId take_saved_slot() {
    return saved_.region(saved_.take(pass_number(), pass_number()).slot);
  }
  Bytes saved_on_host() const {
    return {layout_.saved_on_host[of_block(pass().block, pass().micro)], 0,
            shape_of(pass().block).saved_bytes};
  }

  // ---- Passes

  void fetch_batches() {
    for (int m = 0; m < n_micro_; ++m)
      add(move_of(Verb::fetch_batch, QueueId::h2d, -1, m,
                  {layout_.batches_on_host[static_cast<size_t>(m)], 0, shape_.batch_bytes},
                  {layout_.batches[static_cast<size_t>(m)], 0, shape_.batch_bytes}));
  }

  Action pass_action(Verb verb) const {
    Action action{
        .verb = verb, .queue = QueueId::compute, .block = pass().block, .micro = pass().micro};
    action.reads.reserve(8);
    action.writes.reserve(8);
    return action;
  }
  void use_batch_and_workspace(Action& run) const {
    const auto m = static_cast<size_t>(run.micro);
    put(run.reads, layout_.batches_on_host[m], 0, shape_.batch_bytes, Role::batch_on_host);
    put(run.reads, layout_.batches[m], 0, shape_.batch_bytes, Role::batch);
    for (RegionId room : {layout_.scratch, layout_.library, layout_.generation})
      put(run.writes, room, 0, size_of_region(room), Role::workspace);
  }
  /** The last block has no output, but logits and a loss. */
  void write_loss(Action& run) const {
    if (run.block != shape_.n_blocks() - 1) return;
    put(run.writes, layout_.batches[static_cast<size_t>(run.micro)], 0, shape_.batch_bytes,
        Role::batch);
    put(run.writes, layout_.step_sums, step_sum_offset(shape_.n_blocks() + run.micro), kSum_bytes,
        Role::loss);
  }

  void forward() {
    values_.begin_pass(t_);
    Action run = pass_action(Verb::forward);
    read_weights(run);
    const bool saves_on_host = trains_ && block(run.block).activations == Activations::host;
    const RegionId slot = saves_on_host ? take_saved_slot() : -1;
    read_values(shape_of(run.block).values.inputs, Role::input, run);
    write_values(shape_of(run.block).values.outputs, Role::output, run);
    put_saved(run.writes, run, saved_at(run, slot));
    write_loss(run);
    use_batch_and_workspace(run);
    add(std::move(run));
    if (saves_on_host) {
      const Bytes home = saved_on_host();
      Action send = move_of(Verb::send_saved, QueueId::d2h, pass().block, pass().micro,
                            {slot, 0, home.n_bytes}, home);
      release(send, slot);
      add(std::move(send));
    }
    send_values_that_leave();
  }

  /** Activations where the backward reads them. */
  void make_saved_ready(Action& run) {
    switch (block(run.block).activations) {
      case Activations::keep:
        return put_saved(run.reads, run, saved_at(run, -1));
      case Activations::selective:
      case Activations::recompute: {
        const SavedAt at = saved_at(run, -1);
        put_saved(run.reads, run, at);
        // The tensors that the head's forward pass saved are still there when its backward pass
        // follows at once.
        const BlockPass& before = passes_[t_ - 1];
        if (before.backward || before.block != run.block || before.micro != run.micro)
          recompute(run, at);
        release(run, layout_.saved_recomputed);
        return;
      }
      case Activations::host: {
        const RegionId slot = take_saved_slot();
        const Bytes home = saved_on_host();
        add(move_of(Verb::fetch_saved, QueueId::h2d, run.block, run.micro, home,
                    {slot, 0, home.n_bytes}));
        put_saved(run.reads, run, {.kept = slot});
        release(run, slot);
        return;
      }
    }
  }

  /** Makes the activations of a backward again, from what that reads. */
  void recompute(const Action& backward, const SavedAt& at) {
    Action again = pass_action(Verb::recompute);
    for (const Bytes& bytes : backward.reads)
      if (bytes.role == Role::weights || bytes.role == Role::borrowed ||
          bytes.role == Role::input || (bytes.role == Role::saved && at.recomputed >= 0))
        again.reads.push_back(bytes);
    if (at.recomputed >= 0) {
      put(again.writes, at.recomputed, 0, shape_of(again.block).saved_recomputed_bytes,
          Role::saved_recomputed);
    } else {
      put(again.writes, at.kept, 0, shape_of(again.block).saved_bytes, Role::saved);
      write_loss(again);
      // Nobody reads the outputs again. Where they have no region of their own, they go to where
      // something else is about to be written.
      for (int v : shape_of(again.block).values.outputs) {
        const size_t i = of_block(v, again.micro);
        put(again.writes, layout_.values[i] >= 0 ? layout_.values[i] : layout_.discarded[i], 0,
            value_bytes(v), Role::output);
      }
    }
    use_batch_and_workspace(again);
    add(std::move(again));
  }

  void backward() {
    values_.begin_pass(t_);
    Action run = pass_action(Verb::backward);
    const int b = run.block;
    read_weights(run);
    read_values(shape_of(b).values.inputs, Role::input, run);
    read_values(shape_of(b).values.grad_outputs, Role::grad_output, run);
    write_values(shape_of(b).values.grad_inputs, Role::grad_input, run);
    make_saved_ready(run);
    use_batch_and_workspace(run);
    const bool is_last_sum = run.micro == n_micro_ - 1;
    const RegionId at = write_grads(run);
    add(std::move(run));
    if (!block(b).updates_on_host || !block(b).has_grads || (is_vertical_ && !is_last_sum)) return;
    // The final sum passes through the device: its norm is taken there, without a pass over host
    // memory.
    if (is_last_sum && norm_on_device(b) && block(b).is_trained)
      square_sum(b, QueueId::compute, at, layout_.step_sums);
    send_grads(b, at);
    if (is_last_sum) update_as_grads_arrive(b);
  }

  // ---- Gradients

  int64_t grad_bytes(int b) const { return block(b).n_grad_elements * compute_bytes_; }
  int64_t sum_bytes(int b) const {
    return block(b).n_grad_elements * static_cast<int64_t>(size_of(block(b).grad_type));
  }

  /** The backward's gradients go to a slot where the block streams, else to where they stay;
   * through a region of their own where they are added there. Returns the place of the sum. */
  RegionId write_grads(Action& run) {
    const int b = run.block;
    if (!block(b).has_grads) return -1;
    const RegionId at = block(b).updates_on_host ? grads_.region(grad_slot_ = grad_slot(b))
                                                 : layout_.segment(b, Segment::grads);
    if (!block(b).sums_on_device) {
      put(run.writes, at, 0, grad_bytes(b), Role::grads);
      return at;
    }
    put(run.writes, layout_.grad_temp, 0, grad_bytes(b), Role::grads);
    if (run.micro > 0) put(run.reads, at, 0, sum_bytes(b), Role::sum);
    put(run.writes, at, 0, sum_bytes(b), Role::sum);
    release(run, layout_.grad_temp);
    return at;
  }
  /** Vertical: the sum stays in its slot through all micro-batches. Horizontal: each micro-batch's
   * goes to the host. */
  int grad_slot(int b) {
    const int item = is_vertical_ ? b : shape_.n_blocks() + pass_number();
    const int slot = grads_.find(item);
    return slot >= 0 ? slot : grads_.take(item, pass_number()).slot;
  }

  void send_grads(int b, RegionId slot) {
    const bool is_staged = block(b).sums_on_host;
    const RegionId to = is_staged ? layout_.grad_staging[static_cast<size_t>(grad_slot_)]
                                  : layout_.segment(b, Segment::grads);
    const int64_t n_bytes = is_staged ? grad_bytes(b) : sum_bytes(b);
    const int micro = is_vertical_ ? -1 : pass().micro;
    Action send =
        move_of(Verb::send_grads, QueueId::d2h, b, micro, {slot, 0, n_bytes}, {to, 0, n_bytes});
    // The update that follows asks whether they are finite; the step's sums come too late for it.
    if (each_decides_ && block(b).is_trained && norm_on_device(b)) {
      put(send.reads, layout_.step_sums, step_sum_offset(b), kSum_bytes, Role::moved);
      put(send.writes, layout_.arrived_sums, step_sum_offset(b), kSum_bytes, Role::moved);
    }
    release(send, slot);
    add(std::move(send));
    if (!is_staged) return;
    Action sum{.verb = Verb::accumulate, .queue = QueueId::host, .block = b, .micro = micro};
    const RegionId home = layout_.segment(b, Segment::grads);
    put(sum.reads, to, 0, n_bytes, Role::grads);
    if (micro > 0) put(sum.reads, home, 0, sum_bytes(b), Role::sum);
    put(sum.writes, home, 0, sum_bytes(b), Role::sum);
    release(sum, to);
    add(std::move(sum));
  }

  /** One action for all that a block borrows; users in forward order, as design 5 adds them. */
  void combine_tied() {
    for (int user = 0; user < shape_.n_blocks(); ++user) {
      Action combine{.verb = Verb::combine,
                     .queue = block(user).updates_on_host ? QueueId::host : QueueId::compute,
                     .block = user};
      for (int i = 0; i < static_cast<int>(shape_of(user).borrowed.size()); ++i) {
        const TensorExtent& tensor = shape_.borrowed_tensor(user, i);
        if (!tensor.trainable) continue;
        const int owner = shape_of(user).borrowed[static_cast<size_t>(i)].block;
        const int64_t n_bytes = tensor.n_elements * kSum_element_bytes;
        put(combine.reads, layout_.segment(user, Segment::grads),
            shape_.borrowed_in_grads(user, i) * kSum_element_bytes, n_bytes, Role::grads);
        put(combine.writes, layout_.segment(owner, Segment::grads),
            tensor.offset * kSum_element_bytes, n_bytes, Role::sum);
      }
      // Their sums are read as well.
      combine.reads.insert(combine.reads.end(), combine.writes.begin(), combine.writes.end());
      if (!combine.writes.empty()) add(std::move(combine));
    }
  }

  // ---- The norm, the decision, updates

  static constexpr int64_t kSum_bytes = sizeof(double), kSum_element_bytes = sizeof(float);
  static constexpr int64_t step_sum_offset(int index) { return index * kSum_bytes; }
  /** Final gradients of the block are on the device at some time. */
  bool norm_on_device(int b) const { return !block(b).sums_on_host && !block(b).is_tied; }

  void square_sum(int b, QueueId queue, RegionId grads, RegionId sums) {
    Action sum{.verb = Verb::square_sum, .queue = queue, .block = b};
    put(sum.reads, grads, 0,
        shape_of(b).n_trained_elements * static_cast<int64_t>(size_of(block(b).grad_type)),
        Role::grads);
    put(sum.writes, sums, step_sum_offset(b), kSum_bytes, Role::square_sum);
    square_sums_.push_back({queue == QueueId::compute ? layout_.step_sums_on_host : sums,
                            step_sum_offset(b), kSum_bytes, Role::square_sum});
    add(std::move(sum));
  }
  void square_sums() {
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      if (!block(b).is_trained) continue;
      const RegionId grads = layout_.segment(b, Segment::grads);
      if (!block(b).updates_on_host)
        square_sum(b, QueueId::compute, grads, layout_.step_sums);
      else if (!norm_on_device(b) && !updated_[static_cast<size_t>(b)])  // else taken on the way
        square_sum(b, QueueId::host, grads, layout_.arrived_sums);
    }
  }

  void send_step_sums() {
    const int64_t n_bytes = step_sums_bytes(shape_);
    add(move_of(Verb::send_step_sums, QueueId::d2h, -1, -1, {layout_.step_sums, 0, n_bytes},
                {layout_.step_sums_on_host, 0, n_bytes}));
  }

  /** Waits for the norm's parts and for all else of the step: what follows may use each slot as
   * new. */
  void decide() {
    Action decide{.verb = Verb::decide, .queue = QueueId::decision};
    decide.reads = square_sums_;
    for (int m = 0; m < n_micro_; ++m)
      put(decide.reads, layout_.step_sums_on_host, step_sum_offset(shape_.n_blocks() + m),
          kSum_bytes, Role::loss);
    decide.after.assign(last_.begin(), last_.end());
    decide_ = add(std::move(decide));
  }

  /** The block's weights are not read any more in this step: its backward has. */
  void update_as_grads_arrive(int b) {
    if (order_ != UpdateOrder::as_grads_arrive || !block(b).is_trained || block(b).is_tied ||
        shape_of(b).updates_late)
      return;
    if (!norm_on_device(b))
      square_sum(b, QueueId::host, layout_.segment(b, Segment::grads), layout_.arrived_sums);
    update(b);
  }
  void update_in_need_order() {
    for (int b = 0; b < shape_.n_blocks(); ++b)
      if (block(b).is_trained && !updated_[static_cast<size_t>(b)]) update(b);
  }
  void update(int b) {
    updated_[static_cast<size_t>(b)] = true;
    Action update{.verb = Verb::update,
                  .queue = block(b).updates_on_host ? QueueId::host : QueueId::compute,
                  .block = b};
    if (decide_ >= 0) update.after.push_back(decide_);
    const auto trained_of = [&](Segment s) {
      return element_bytes(shape_, b, s, 0, shape_of(b).n_trained_elements).n_bytes;
    };
    put(update.reads, layout_.segment(b, Segment::grads), 0, trained_of(Segment::grads),
        Role::grads);
    if (each_decides_)
      put(update.reads, block(b).updates_on_host ? layout_.arrived_sums : layout_.step_sums_on_host,
          step_sum_offset(b), kSum_bytes, Role::square_sum);
    put(update.writes, layout_.segment(b, Segment::master), 0, trained_of(Segment::master),
        Role::states);
    for (Segment s : {Segment::adam_m, Segment::adam_v})
      put(update.writes, layout_.segment(b, s), 0, segment_bytes(shape_, b, s), Role::states);
    update.reads.insert(update.reads.end(), update.writes.begin(), update.writes.end());
    if (!shape_.weights_are_master()) {
      put(update.writes, layout_.segment(b, Segment::weights), 0, trained_of(Segment::weights),
          Role::weights);
      if (shape_.split_master) update.reads.push_back(update.writes.back());
    }
    add(std::move(update));
  }

  const StepShape& shape_;
  const Layout& layout_;
  int n_micro_;
  bool trains_;
  bool is_vertical_;
  int64_t compute_bytes_;
  UpdateOrder order_{};
  bool each_decides_ = false;
  bool fetches_own_slots_ = true;
  std::vector<BlockPass> passes_;
  size_t t_ = 0;  ///< the pass that is being listed
  StepList list_;
  Touches touches_;
  SlotPool weights_;  ///< of blocks
  SlotPool grads_;    ///< of blocks, or of passes where each micro-batch's leave
  SlotPool saved_;    ///< of passes
  ValueSlots values_;
  int grad_slot_ = -1;                ///< of the last backward
  std::vector<bool> updated_;         ///< by block
  std::vector<bool> fetched_before_;  ///< by block
  std::vector<Bytes> square_sums_;    ///< where the decision finds each block's
  std::array<int, kQueues> last_{-1, -1, -1, -1, -1, -1};  ///< of each queue, without updates
  int decide_ = -1;
};

}  // namespace

StepList make_training_list(const StepShape& shape,
                            const Layout& layout,
                            int n_micro,
                            UpdateOrder order,
                            bool each_decides) {
  FERRY_CHECK(n_micro >= 1 && n_micro <= shape.n_micro_max, "{} micro-batches, planned {}", n_micro,
              shape.n_micro_max);
  return ListMaker(shape, layout, n_micro, true).training(order, each_decides);
}

StepList make_evaluation_list(const StepShape& shape,
                              const Layout& layout,
                              bool fetches_own_slots) {
  return ListMaker(shape, layout, 1, false).evaluation(fetches_own_slots);
}

}  // namespace ferry
