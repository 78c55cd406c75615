#include "offload/step/pager.h"

#include <fmt/format.h>

#include <algorithm>

#include "offload/step/gradient_actions.h"
#include "offload/step/list_draft.h"
#include "offload/step/passes.h"
#include "offload/step/slot_pool.h"
#include "offload/step/state_pieces.h"
#include "offload/step/values/value_slots.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Builds a list pass by pass. */
class ListMaker {
 public:
  ListMaker(const StepShape& shape, const Layout& layout, int n_micro, bool trains)
      : shape_(shape),
        layout_(layout),
        trains_(trains),
        is_vertical_(shape.order == AccumulationOrder::vertical),
        compute_bytes_(static_cast<int64_t>(size_of(shape.compute))),
        rounds_(trains ? shape.ranks : evaluating(shape.ranks), n_micro),
        n_own_micro_(rounds_.n_of(shape.ranks.rank)),
        passes_(passes_of(shape, rounds_, shape.ranks.rank, trains)),
        passed_(values_passed(shape, passes_)),
        draft_(layout),
        weights_(layout.weight_slots, passes_of_blocks()),
        saved_(layout.saved_slots),
        values_(shape, layout, passes_, passed_, n_own_micro_),
        fetched_before_(shape.blocks.size(), false),
        gathered_(layout.regions.size(), -1) {
    for (int b = 0; b < shape.n_blocks(); ++b)
      if (block(b).sends_weights) last_sent_ = b;
  }

  StepList training(UpdateOrder order, bool each_decides) {
    GradientActions gradients(shape_, layout_, draft_, passes_, rounds_, order, each_decides);
    fetch_batches();
    for (t_ = 0; t_ < passes_.size(); ++t_) {
      if (!is_of_others()) pass().backward ? backward(gradients) : forward();
      pass_values();
    }
    gradients.finish(n_own_micro_, [this](int b) { return update_slot(b); });
    return draft_.take();
  }

  StepList evaluation(bool fetches_own_slots) {
    fetches_own_slots_ = fetches_own_slots;
    fetch_batches();
    for (t_ = 0; t_ < passes_.size(); ++t_) {
      if (!is_of_others()) forward();
      pass_values();
    }
    GradientActions(shape_, layout_, draft_, passes_, rounds_, {}, false).send_step_sums();
    return draft_.take();
  }

 private:
  /** Each replica evaluates a micro-batch, whatever share of a step it has. */
  static Ranks evaluating(Ranks ranks) {
    ranks.shares.clear();
    return ranks;
  }
  const BlockPass& pass() const { return passes_[t_]; }
  /** The pass's block is another stage's. */
  bool is_of_others() const { return !shape_.runs(pass().block); }
  int pass_number() const { return static_cast<int>(t_); }
  const BlockShape& shape_of(int b) const { return shape_.blocks[b]; }
  const BlockLayout& block(int b) const { return layout_.block(b); }
  int lane(int micro) const { return micro % shape_.n_live(); }
  size_t of_block(int b, int micro) const {
    return static_cast<size_t>(b * shape_.n_live() + lane(micro));
  }

  std::vector<std::vector<int>> passes_of_blocks() const {
    std::vector<std::vector<int>> passes(shape_.blocks.size());
    for (size_t t = 0; t < passes_.size(); ++t)
      if (shape_.runs(passes_[t].block))
        passes[static_cast<size_t>(passes_[t].block)].push_back(static_cast<int>(t));
    return passes;
  }

  // ---- Weights

  /** Lists what brings the block's weights to the pass, and where the pass reads them. */
  void bring_weights(Action& run) {
    const int b = run.block;
    const bool in_slot = is_in_slot(b);
    const RegionId at = in_slot ? weight_slot(b) : layout_.segment(b, Segment::weights);
    put(run.reads, at, 0, shape_of(b).n_elements * compute_bytes_, Role::weights);
    // Others may still want this rank's part: what follows the pass in the slot waits for them,
    // too.
    if (shape_.cuts_blocks() && gathered_[at] >= 0) run.after.push_back(gathered_[at]);
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
      const int owner = shape_of(b).borrowed[i].block;
      each(i, Bytes{layout_.segment(owner, Segment::weights), tensor.offset * compute_bytes_,
                    tensor.n_elements * compute_bytes_, Role::borrowed});
    }
  }

  bool is_in_slot(int b) const { return block(b).streams || block(b).own_slot >= 0; }

  /** The slot with the block's weights, which are fetched where they are not there. */
  RegionId weight_slot(int b) {
    if (const RegionId own = block(b).own_slot; own >= 0) {
      if (!fetched_before_[b] && fetches_own_slots_) {
        fetch_weights(b, own, -1);
        gather_weights(b, own, -1);
      }
      return own;
    }
    if (const int slot = weights_.find(b); slot >= 0) {
      weights_.use(slot, pass_number());
      return weights_.region(slot);
    }
    const RegionId at = take_weight_slot(b, pass_number());
    const int micro = is_vertical_ ? -1 : pass().round;
    if (!block(b).reads_weights) {
      fetch_weights(b, at, micro);
      gather_weights(b, at, micro);
    } else if (shape_.computes_on_host)
      read_weights_from_drive(b, at, micro, sent_before(at));
    else
      read_and_fetch_weights(b, at, micro);
    return at;
  }
  RegionId take_weight_slot(int b, int t) {
    const auto [slot, evicted] = weights_.take(b, t);
    const RegionId at = weights_.region(slot);
    if (evicted >= 0) draft_.release_after_last_use(at);
    return at;
  }
  /** The block whose update of the step before must have ended before anything comes into the slot:
   * the last one that was updated in one. None where this step has used the slot. */
  std::vector<int> sent_before(RegionId slot) const {
    if (last_sent_ < 0 || draft_.is_used(slot)) return {};
    return {last_sent_};
  }
  /** A slot in which the device updates the block's weights. They are fetched where the update
   * reads them and they are not there any more. */
  RegionId update_slot(int b) {
    const int t = static_cast<int>(passes_.size()) + b;  // updates come after the passes
    if (const int slot = weights_.find(b); slot >= 0) {
      weights_.use(slot, t);
      return weights_.region(slot);
    }
    const RegionId at = take_weight_slot(b, t);
    if (!shape_.weights_are_master() && !shape_.split_master) return at;
    const int64_t n_bytes = shape_of(b).n_trained_elements * compute_bytes_;
    draft_.add_move({.verb = Verb::fetch_weights, .queue = QueueId::h2d, .block = b},
                    {layout_.segment(b, Segment::weights), 0, n_bytes}, {at, 0, n_bytes});
    return at;
  }
  void read_weights_from_drive(int b, RegionId to, int micro, std::vector<int> after_update = {}) {
    Action read{.verb = Verb::read_weights,
                .queue = QueueId::nvme_read,
                .block = b,
                .micro = micro,
                .after_update = std::move(after_update)};
    put(read.writes, to, 0, drive_weights_bytes(shape_, b), Role::moved);
    follow_updates(b, read);
    draft_.add(std::move(read));
  }
  void read_and_fetch_weights(int b, RegionId at, int micro) {
    const RegionId window = layout_.weight_windows[n_read_++ % layout_.weight_windows.size()];
    read_weights_from_drive(b, window, micro);
    const int64_t n_bytes = shape_of(b).n_elements * compute_bytes_;
    draft_.add_move(fetch_to(at, b, micro), {window, 0, n_bytes}, {at, 0, n_bytes}, window);
  }
  Action fetch_to(RegionId slot, int b, int micro) const {
    return {.verb = Verb::fetch_weights,
            .queue = QueueId::h2d,
            .block = b,
            .micro = micro,
            .after_update = sent_before(slot)};
  }
  void fetch_weights(int b, RegionId at, int micro) {
    Action fetch = fetch_to(at, b, micro);
    for (const SlotPart& part : parts_in_slot(b))
      if (!is_gathered_from_home(part.block))
        for (const auto& [from, to] : own_moves(part, at))
          put_together(fetch, from, to);
    if (fetch.writes.empty()) return;
    follow_updates(b, fetch);
    draft_.add(std::move(fetch));
  }

  /** Elements of a block that lie together in a slot. The slot may belong to another block. */
  struct SlotPart {
    int block = 0;
    int64_t begin = 0;  ///< in that block
    int64_t n_trained = 0, n_frozen = 0;
    int64_t in_slot = 0;  ///< elements before them in the slot
  };
  std::vector<SlotPart> parts_in_slot(int b) const {
    const BlockShape& its = shape_of(b);
    std::vector<SlotPart> parts = {{.block = b,
                                    .n_trained = its.n_trained_elements,
                                    .n_frozen = its.n_elements - its.n_trained_elements}};
    for (int i = 0; i < static_cast<int>(its.borrowed.size()); ++i) {
      const TensorExtent& tensor = shape_.borrowed_tensor(b, i);
      parts.push_back({.block = its.borrowed[i].block,
                       .begin = tensor.offset,
                       .n_trained = tensor.trainable ? tensor.n_elements : 0,
                       .n_frozen = tensor.trainable ? 0 : tensor.n_elements,
                       .in_slot = shape_.borrowed_in_slot(b, i)});
    }
    return parts;
  }

  struct Move {
    Bytes from, to;
  };
  /** This rank brings into the slot its part of the trained elements, and all frozen ones. */
  std::vector<Move> own_moves(const SlotPart& part, RegionId at) const {
    const ElementRange trained = {part.begin, part.n_trained};
    const ElementRange own =
        shape_.cuts_blocks() ? common(trained, shape_.own_part(part.block)) : trained;
    std::vector<Move> moves;
    for (const ElementRange& range : {own, ElementRange{trained.end(), part.n_frozen}}) {
      const ByteRange home =
          element_bytes(shape_, part.block, Segment::weights, range.begin, range.n);
      const int64_t offset = (part.in_slot + range.begin - part.begin) * compute_bytes_;
      if (range.n > 0)
        moves.push_back({{layout_.segment(part.block, Segment::weights), home.offset, home.n_bytes,
                          Role::moved},
                         {at, offset, home.n_bytes, Role::moved}});
    }
    return moves;
  }
  /** Ranges that follow each other are copied at once. */
  static void put_together(Action& move, const Bytes& from, const Bytes& to) {
    const auto follows = [](const std::vector<Bytes>& all, const Bytes& next) {
      return !all.empty() && all.back().region == next.region &&
             all.back().offset + all.back().n_bytes == next.offset;
    };
    if (follows(move.reads, from) && follows(move.writes, to)) {
      move.reads.back().n_bytes += from.n_bytes;
      move.writes.back().n_bytes += to.n_bytes;
      return;
    }
    move.reads.push_back(from);
    move.writes.push_back(to);
  }
  /** The rank's part lies on the device, and goes to all ranks from there. */
  bool is_gathered_from_home(int owner) const {
    const RegionId home = layout_.segment(owner, Segment::weights);
    return shape_.cuts_blocks() && home >= 0 && layout_.region(home).place == Place::device;
  }

  /** Each rank has its part in its slot or at home on the device, and gets the others' into the
   * slot. */
  void gather_weights(int b, RegionId at, int micro) {
    if (!shape_.cuts_blocks()) return;
    const int self = shape_.ranks.rank, world = shape_.ranks.world;
    for (const SlotPart& part : parts_in_slot(b)) {
      Action gather{
          .verb = Verb::gather_weights, .queue = QueueId::collective, .block = b, .micro = micro};
      const auto put_for = [&](std::vector<Bytes>& to, Bytes bytes, int peer) {
        bytes.peer = peer;
        if (bytes.n_bytes > 0) to.push_back(bytes);
      };
      const auto in_slot = [&](int rank) -> Bytes {
        const ElementRange range =
            common({part.begin, part.n_trained}, shape_.part(part.block, rank));
        return {at, (part.in_slot + range.begin - part.begin) * compute_bytes_,
                range.n * compute_bytes_, Role::moved};
      };
      Bytes own = in_slot(self);
      if (is_gathered_from_home(part.block)) {
        const std::vector<Move> moves = own_moves(part, at);
        for (const auto& [from, to] : moves) {
          put_for(gather.reads, from, self);
          put_for(gather.writes, to, self);
        }
        if (own.n_bytes > 0) own = moves.front().from;
      }
      for (int rank = 0; rank < world; ++rank) {
        if (rank == self || !shape_.runs(part.block, rank)) continue;
        put_for(gather.reads, own, rank);
        put_for(gather.writes, in_slot(rank), rank);
      }
      if (part.n_trained == 0 && gather.writes.empty()) continue;
      follow_updates(b, gather);
      gathered_[at] = draft_.add(std::move(gather));
    }
  }
  /** The first fetch of a list; later ones follow it. Where ranks gather, a first fetch may have
   * been none of the trained weights. */
  void follow_updates(int b, Action& fetch) {
    if (fetched_before_[b] && !shape_.cuts_blocks()) return;
    fetched_before_[b] = true;
    fetch.after_update.push_back(b);
    for (const BorrowedExtent& borrowed : shape_of(b).borrowed)
      fetch.after_update.push_back(borrowed.block);
  }

  // ---- Values between blocks

  int64_t value_bytes(int value) const { return shape_.values[value].n_bytes; }
  Bytes value_on_host(int value) const {
    return {layout_.values_on_host[of_block(value, pass().micro)], 0, value_bytes(value)};
  }

  void read_values(Action& run) {
    for (const auto& [port, v] : ports_read(shape_, pass())) {
      const auto [at, is_there] = values_.find(v);
      if (!is_there)
        draft_.add_move(move_of(Verb::fetch_layer_input, QueueId::h2d, writer_of(v)),
                        value_on_host(v), {at, 0, value_bytes(v)});
      run.reads.push_back({at, 0, value_bytes(v), Role::value, port});
      if (!values_.is_needed_later(v)) draft_.release(run, at);
    }
  }
  void write_values(Action& run) {
    for (const auto& [port, v] : ports_written(shape_, pass()))
      run.writes.push_back({values_.find(v).region, 0, value_bytes(v), Role::value, port});
  }
  void send_values_that_leave() {
    for (const auto& [port, v] : ports_written(shape_, pass()))
      if (values_.leaves(v))
        draft_.add_move(move_of(Verb::send_layer_input, QueueId::d2h, pass().block),
                        {values_.find(v).region, 0, value_bytes(v)}, value_on_host(v));
  }
  /** Gives values that the pass has written to the ranks that read them, or takes them where this
   * rank does. The replica's other stages have the action, too, without bytes, so that all of them
   * have as many. */
  void pass_values() {
    if (!passed_[t_].empty() && is_of_others()) values_.begin_pass(t_);
    for (const PassedValue& passed : passed_[t_]) {
      const int v = passed.value, self = shape_.ranks.rank;
      Action action{.verb = Verb::pass_value,
                    .queue = QueueId::collective,
                    .block = pass().block,
                    .micro = pass().micro};
      const auto bytes = [&](int peer) {
        return Bytes{values_.find(v).region, 0, value_bytes(v), Role::moved, -1, peer};
      };
      if (self == passed.from) action.reads.push_back(bytes(passed.to));
      if (self == passed.to) action.writes.push_back(bytes(passed.from));
      draft_.add(std::move(action));
      if (self == passed.to && values_.leaves(v))
        draft_.add_move(move_of(Verb::send_layer_input, QueueId::d2h, pass().block),
                        {values_.find(v).region, 0, value_bytes(v)}, value_on_host(v));
    }
  }
  /** The block whose forward writes the value. */
  int writer_of(int value) const {
    for (int b = 0; b < shape_.n_blocks(); ++b)
      for (const Port& port : shape_of(b).ports)
        if (port.value == value && port.forward == PortUse::writes) return b;
    return -1;
  }

  // ---- Activations

  struct SavedAt {
    RegionId kept = -1, recomputed = -1;
  };
  /** The place where a pass of the block finds or leaves its activations; kept ones in the slot, if
   * there is one. */
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
    for (int m = 0; m < n_own_micro_; ++m)
      draft_.add_move({.verb = Verb::fetch_batch, .queue = QueueId::h2d, .micro = m},
                      {layout_.batches_on_host[static_cast<size_t>(m)], 0, shape_.batch_bytes},
                      {layout_.batches[static_cast<size_t>(m)], 0, shape_.batch_bytes});
  }

  /** A move for the pass's micro-batch. */
  Action move_of(Verb verb, QueueId queue, int block) const {
    return {.verb = verb, .queue = queue, .block = block, .micro = pass().micro};
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
      if (room >= 0) put(run.writes, room, 0, layout_.region(room).n_bytes, Role::workspace);
  }
  /** The last block has no output, but logits and a loss; others may have a loss, too. */
  void write_loss(Action& run) const {
    if (!shape_of(run.block).has_loss) return;
    if (run.block == shape_.n_blocks() - 1)
      put(run.writes, layout_.batches[static_cast<size_t>(run.micro)], 0, shape_.batch_bytes,
          Role::batch);
    put(run.writes, layout_.step_sums,
        step_sum_offset(loss_slot(shape_, run.micro, shape_.loss_index(run.block))), kSum_bytes,
        Role::loss);
  }

  void forward() {
    Action run = pass_action(Verb::forward);
    if (pass().runs) values_.begin_pass(t_);
    bring_weights(run);
    if (!pass().runs) return;
    const bool saves_on_host = trains_ && block(run.block).activations == Activations::host;
    const RegionId slot = saves_on_host ? take_saved_slot() : -1;
    read_values(run);
    write_values(run);
    put_saved(run.writes, run, saved_at(run, slot));
    write_loss(run);
    use_batch_and_workspace(run);
    draft_.add(std::move(run));
    if (saves_on_host) {
      const Bytes home = saved_on_host();
      draft_.add_move(move_of(Verb::send_saved, QueueId::d2h, pass().block),
                      {slot, 0, home.n_bytes}, home, slot);
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
        if (before.backward || before.block != run.block || before.micro != run.micro ||
            !before.runs)
          recompute(run, at);
        draft_.release(run, layout_.saved_recomputed);
        return;
      }
      case Activations::host: {
        const RegionId slot = take_saved_slot();
        const Bytes home = saved_on_host();
        draft_.add_move(move_of(Verb::fetch_saved, QueueId::h2d, run.block), home,
                        {slot, 0, home.n_bytes});
        put_saved(run.reads, run, {.kept = slot});
        draft_.release(run, slot);
        return;
      }
    }
  }

  /** Makes the activations of a backward again, from what that reads. */
  void recompute(const Action& backward, const SavedAt& at) {
    Action again = pass_action(Verb::recompute);
    const std::vector<Port>& ports = shape_of(again.block).ports;
    const auto is_input = [&](const Bytes& bytes) {
      return bytes.role == Role::value && ports[bytes.port].forward == PortUse::reads;
    };
    for (const Bytes& bytes : backward.reads)
      if (bytes.role == Role::weights || bytes.role == Role::borrowed || is_input(bytes) ||
          (bytes.role == Role::saved && at.recomputed >= 0))
        again.reads.push_back(bytes);
    if (at.recomputed >= 0) {
      put(again.writes, at.recomputed, 0, shape_of(again.block).saved_recomputed_bytes,
          Role::saved_recomputed);
    } else {
      put(again.writes, at.kept, 0, shape_of(again.block).saved_bytes, Role::saved);
      write_loss(again);
      // Nobody reads the outputs again. Where they have no region of their own, they go to where
      // something else is about to be written.
      for (size_t p = 0; p < ports.size(); ++p) {
        if (ports[p].forward != PortUse::writes) continue;
        const int v = ports[p].value;
        const size_t i = of_block(v, again.micro);
        const RegionId at = layout_.values[i] >= 0 ? layout_.values[i] : layout_.discarded[i];
        if (at >= 0)
          again.writes.push_back({at, 0, value_bytes(v), Role::value, static_cast<int>(p)});
      }
    }
    use_batch_and_workspace(again);
    draft_.add(std::move(again));
  }

  void backward(GradientActions& gradients) {
    Action run = pass_action(Verb::backward);
    if (pass().runs) values_.begin_pass(t_);
    const int b = run.block;
    bring_weights(run);
    if (pass().ran_in >= 0) return gradients.give(b, pass_number());
    if (!pass().runs) return gradients.take_parts(b, pass_number());
    read_values(run);
    write_values(run);
    make_saved_ready(run);
    use_batch_and_workspace(run);
    const RegionId grads = gradients.choose_place(run, pass_number());
    draft_.add(std::move(run));
    if (pass().waits) return;
    if (shape_.cuts_blocks())
      gradients.exchange(b, grads, pass().round);
    else
      gradients.after_backward(b, run.micro, pass().round + 1 == rounds_.n(), grads);
  }

  const StepShape& shape_;
  const Layout& layout_;
  bool trains_;
  bool is_vertical_;
  int64_t compute_bytes_;
  bool fetches_own_slots_ = true;
  Rounds rounds_;
  int n_own_micro_;  ///< of this rank
  std::vector<BlockPass> passes_;
  std::vector<std::vector<PassedValue>> passed_;  ///< by pass
  size_t t_ = 0;                                  ///< the pass that is being listed
  ListDraft draft_;
  SlotPool weights_;   ///< holds blocks
  size_t n_read_ = 0;  ///< of weights from a drive
  SlotPool saved_;     ///< holds passes
  ValueSlots values_;
  Indexed<bool> fetched_before_;  ///< by block
  Indexed<int> gathered_;         ///< by region: the last action that gathered weights there
  int last_sent_ = -1;            ///< the last block that is updated in a slot
};

}  // namespace

StepList make_training_list(const StepShape& shape,
                            const Layout& layout,
                            int n_micro,
                            UpdateOrder order,
                            bool each_decides) {
  FERRY_CHECK(n_micro >= 1 && Rounds(shape.ranks, n_micro).n() <= shape.n_micro_max,
              "{} micro-batches, planned {}", n_micro, shape.n_micro_max);
  return ListMaker(shape, layout, n_micro, true).training(order, each_decides);
}

StepList make_evaluation_list(const StepShape& shape,
                              const Layout& layout,
                              bool fetches_own_slots,
                              int n_rounds) {
  FERRY_CHECK(n_rounds >= 1 && n_rounds <= shape.n_micro_max, "{} micro-batches, planned {}",
              n_rounds, shape.n_micro_max);
  const int n_micro = n_rounds * shape.ranks.n_replicas();
  return ListMaker(shape, layout, n_micro, false).evaluation(fetches_own_slots);
}

}  // namespace ferry
