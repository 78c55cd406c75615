#include "tests/offload/step/list_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "offload/step/state_pieces.h"
#include "tests/offload/step/contents.h"

namespace ferry::test {
namespace {

class ProgramMaker {
 public:
  ProgramMaker(const StepShape& shape, const std::vector<ListRun>& runs)
      : shape_(shape), layout_(make_layout(shape)) {
    for (int b = 0; b < shape_.n_blocks(); ++b)
      for (Segment s : lasting_segments(shape_.optim))
        if (const RegionId id = layout_.segment(b, s); id >= 0)
          contents_.write({id, 0, layout_.region(id).n_bytes}, state_of(b, id, 0));
    for (int b = 0; b < shape_.n_blocks(); ++b)
      for (int piece = 0; piece < shape_.n_state_pieces(b); ++piece)
        pieces_.push_back({b, piece});
    for (const ListRun& run : runs)
      add(run);
  }
  Program program;

 private:
  void add(const ListRun& run) {
    n_micro_ = run.n_micro;
    training_ = run.training;
    n_writes_.clear();
    each_decides_ = run.each_decides;
    Node load{.name = "load", .queue = kMain, .after = {}, .touches = {}};
    for (int m = 0; m < run.n_micro; ++m) {
      const RegionId batch = layout_.batches_on_host[static_cast<size_t>(m)];
      load.touches.push_back({batch, 0, shape_.batch_bytes, true});
      contents_.write({batch, 0, shape_.batch_bytes}, {What::batch, 0, m, step_});
    }
    push(std::move(load));
    std::vector<int> node_of;  // of each action
    for (const Action& action : *run.list) {
      name_ = describe(action, shape_) + " of step " + std::to_string(step_);
      follow(action);
      Node node{.name = name_,
                .queue = static_cast<int>(action.queue),
                .after = {last_main_},
                .touches = touches_of(action)};
      for (int before : action.after)
        node.after.push_back(node_of[static_cast<size_t>(before)]);
      for (int b : action.after_update)
        if (auto at = updates_.find(b); at != updates_.end()) node.after.push_back(at->second);
      if (action.after_commit) node.after.push_back(commit_);
      const int index = push(std::move(node));
      if (action.verb == Verb::commit) commit_ = index;
      node_of.push_back(index);
      if (action.block >= 0 && action.verb == last_of_update(action.block))
        updates_[action.block] = index;
      const bool waits = run.training ? action.verb == Verb::decide : &action == &run.list->back();
      if (waits) push({.name = "wait", .queue = kMain, .after = {index}, .touches = {}});
    }
    ++step_;
    if (run.training) ++version_;
  }

  /** The action that readers of the block's weights wait for in the next step. */
  Verb last_of_update(int b) const {
    if (block(b).place.weights == Place::nvme) return Verb::send_states;
    return is_updated_in_slot(b) ? Verb::send_weights : Verb::update;
  }
  bool is_updated_in_slot(int b) const {
    return block(b).place.weights == Place::host && block(b).place.states == Place::device;
  }

  int push(Node node) {
    node.place_in_queue = n_in_queue_[static_cast<size_t>(node.queue)]++;
    std::erase(node.after, -1);
    const int index = static_cast<int>(program.nodes.size());
    if (node.queue == kMain) last_main_ = index;
    program.nodes.push_back(std::move(node));
    return index;
  }

  std::vector<Touch> touches_of(const Action& action) const {
    std::vector<Touch> touches;
    for (const Bytes& b : action.reads)
      touches.push_back({b.region, b.offset, b.offset + b.n_bytes, false});
    for (const Bytes& b : action.writes)
      touches.push_back({b.region, b.offset, b.offset + b.n_bytes, true});
    // The decision has no bytes: whoever does not ask for a sum of its own waits for it.
    const auto decision = static_cast<RegionId>(layout_.regions.size());
    if (action.verb == Verb::decide) touches.push_back({decision, 0, 1, true});
    if (action.verb == Verb::update && !decides_by_itself(action.block))
      touches.push_back({decision, 0, 1, false});
    // Nor has what lies on the drive: a piece is read before it is written, and what a commit names
    // is there.
    const RegionId drive = decision + 1;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const bool is_its = pieces_[i] == std::pair(action.block, action.piece);
      const bool reads = action.verb == Verb::commit ||
                         (action.verb == Verb::fetch_states && is_its) ||
                         (action.verb == Verb::read_weights && pieces_[i].first == action.block);
      if (reads) touches.push_back({drive, at, at + 1, false});
      if (action.verb == Verb::send_states && is_its) touches.push_back({drive, at, at + 1, true});
    }
    return touches;
  }
  bool decides_by_itself(int b) const {
    return each_decides_ && shape_.updates_in(b) == Place::host;
  }

  // ---- What bytes hold

  const BlockShape& block(int b) const { return shape_.blocks[b]; }
  int64_t compute_bytes() const { return static_cast<int64_t>(size_of(shape_.compute)); }
  bool has_sum(int b) const {
    return shape_.n_micro_max > 1 || (shape_.tied(b) && shape_.compute != DType::f32);
  }
  Content state_of(int b, RegionId region, int version) const {
    const bool is_weights = region == layout_.segment(b, Segment::weights);
    return {is_weights ? What::weights : What::states, b, is_weights ? 0 : region, version};
  }
  void complain(const std::string& text) { program.complaints.push_back(name_ + text); }
  void check(const Bytes& bytes, const Content& content) {
    if (!contents_.holds(bytes, content)) complain(" reads what is not meant for it");
  }
  /** Bytes of a role, of so many in all. */
  std::vector<Bytes> all(const std::vector<Bytes>& bytes, Role role, int64_t n_bytes) {
    std::vector<Bytes> found;
    for (const Bytes& b : bytes)
      if (b.role == role) {
        found.push_back(b);
        n_bytes -= b.n_bytes;
      }
    if (n_bytes != 0)
      complain(" lacks " + std::to_string(n_bytes) + " bytes of role " +
               std::to_string(static_cast<int>(role)));
    return found;
  }
  void check_all(const Action& a, Role role, int64_t n_bytes, const Content& content) {
    for (const Bytes& bytes : all(a.reads, role, n_bytes))
      check(bytes, content);
  }
  void write_all(const Action& a, Role role, int64_t n_bytes, const Content& content) {
    for (const Bytes& bytes : all(a.writes, role, n_bytes))
      contents_.write(bytes, content);
  }

  /** Trained elements have the newest version, frozen ones the first. */
  void check_weights(const Bytes& bytes, int b, int64_t from_element) {
    const int64_t trained = std::clamp<int64_t>(
        (block(b).n_trained_elements - from_element) * compute_bytes(), 0, bytes.n_bytes);
    Content content{What::weights, b, 0, version_, 0, from_element * compute_bytes()};
    check({bytes.region, bytes.offset, trained}, content);
    content.step = 0;
    content.from += trained;
    check({bytes.region, bytes.offset + trained, bytes.n_bytes - trained}, content);
  }
  /** The values that the pass uses so. A forward that changes a value does not run again. */
  template <class IsUsed>
  std::vector<int> values_of(const Action& a, IsUsed is_used) const {
    std::vector<int> values;
    for (const Port& port : block(a.block).ports) {
      const PortUse use = port.of(a.verb == Verb::backward);
      const bool is_run = a.verb != Verb::recompute || use != PortUse::changes;
      if (is_run && is_used(use)) values.push_back(port.value);
    }
    return values;
  }
  void check_values(const Action& a) {
    const std::vector<int> values = values_of(a, [](PortUse use) { return reads(use); });
    const auto found = all(a.reads, Role::value, bytes_of(values));
    for (size_t i = 0; i < std::min(found.size(), values.size()); ++i)
      check(found[i], value_of(values[i], a.micro));
  }
  void write_values(const Action& a) {
    const std::vector<int> values = values_of(a, [](PortUse use) { return writes(use); });
    const auto found = all(a.writes, Role::value, bytes_of(values));
    for (size_t i = 0; i < std::min(found.size(), values.size()); ++i) {
      // Each write makes it another: the passes that change a value in place are all counted.
      if (a.verb != Verb::recompute) ++n_writes_[{values[i], a.micro}];
      contents_.write(found[i], value_of(values[i], a.micro));
    }
  }
  Content value_of(int value, int micro) {
    return {What::value, value, micro, step_, n_writes_[{value, micro}]};
  }
  int64_t bytes_of(const std::vector<int>& values) const {
    int64_t n_bytes = 0;
    for (int v : values)
      n_bytes += shape_.values[v].n_bytes;
    return n_bytes;
  }

  /** The gradients of a block's own tensors, with those of the users before `user`; and behind them
   * those of what it borrows. */
  void check_grads(const Bytes& bytes, int b, int64_t from, int user, int n_earlier = 0) {
    const int64_t width = grad_width(b);
    std::vector<int64_t> cuts = {from, from + bytes.n_bytes};
    for (const TensorExtent& tensor : block(b).tensors)
      for (int64_t cut : {tensor.offset * width, (tensor.offset + tensor.n_elements) * width})
        if (cut > cuts[0] && cut < cuts[1]) cuts.push_back(cut);
    std::ranges::sort(cuts);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      int n_added = n_earlier;
      for (int u = 0; u < user; ++u)
        for (const BorrowedExtent& borrowed : block(u).borrowed) {
          if (borrowed.block != b) continue;
          const TensorExtent& tensor = block(b).tensors[borrowed.tensor];
          n_added += tensor.trainable && cuts[i] >= tensor.offset * width &&
                     cuts[i] < (tensor.offset + tensor.n_elements) * width;
        }
      check({bytes.region, bytes.offset + cuts[i] - from, cuts[i + 1] - cuts[i]},
            grads_of(b, n_added, cuts[i]));
    }
  }
  int64_t grad_width(int b) const { return shape_.grads_fp32(b) ? 4 : compute_bytes(); }
  Content grads_of(int b, int n_added, int64_t from) const {
    if (!has_sum(b) && n_added == 0) return {What::grads, b, n_micro_ - 1, step_, 0, from};
    return {What::sum, b, 0, step_, has_sum(b) ? n_micro_ + n_added : n_added, from};
  }

  void follow(const Action& a) {
    const int b = a.block;
    switch (a.verb) {
      case Verb::forward:
      case Verb::recompute:
      case Verb::backward:
        follow_pass(a);
        break;
      case Verb::accumulate:
        check_all(a, Role::grads, grads_n(b) * compute_bytes(), {What::grads, b, a.micro, step_});
        follow_sum(a);
        break;
      case Verb::combine:
        for (size_t i = 0, k = 0; i < block(b).borrowed.size(); ++i) {
          const BorrowedExtent& borrowed = block(b).borrowed[i];
          const TensorExtent& tensor = block(borrowed.block).tensors[borrowed.tensor];
          if (!tensor.trainable) continue;
          // Uses in the other memory are added by themselves.
          if (k >= a.writes.size() ||
              a.writes[k].region != layout_.segment(borrowed.block, Segment::grads) ||
              a.writes[k].offset != tensor.offset * 4)
            continue;
          if (a.reads.size() != 2 * a.writes.size() ||
              a.reads[k].n_bytes != tensor.n_elements * 4 ||
              a.reads[k + a.writes.size()] != a.writes[k]) {
            complain(" leaves a use out");
            break;
          }
          const Bytes &use = a.reads[k], &sum = a.writes[k];
          check_grads(use, b, shape_.borrowed_in_grads(b, static_cast<int>(i)) * 4, 0);
          int n_earlier = 0;
          for (size_t j = 0; j < i; ++j)
            n_earlier += block(b).borrowed[j] == borrowed;
          check_grads(sum, borrowed.block, tensor.offset * 4, b, n_earlier);
          int n_users = n_earlier + 1;
          for (int u = 0; u < b; ++u)
            n_users += static_cast<int>(std::ranges::count(block(u).borrowed, borrowed));
          contents_.write(sum, grads_of(borrowed.block, n_users, tensor.offset * 4));
          ++k;
        }
        break;
      case Verb::square_sum:
        for (const Bytes& bytes :
             all(a.reads, Role::grads, block(b).n_trained_elements * grad_width(b)))
          check_grads(bytes, b, 0, shape_.n_blocks());
        write_all(a, Role::square_sum, 8, {What::square_sum, b, 0, step_});
        break;
      case Verb::decide: {
        std::set<int> trained, summed;
        for (int t = 0; t < shape_.n_blocks(); ++t)
          if (shape_.is_trained(t)) trained.insert(t);
        for (const Bytes& bytes : all(a.reads, Role::square_sum, 8 * std::ssize(trained))) {
          const auto of = static_cast<int>(bytes.offset / 8);
          check(bytes, {What::square_sum, of, 0, step_});
          summed.insert(of);
        }
        if (summed != trained) complain(" leaves a block out");
        const int n_losses = shape_.n_losses();
        int part = 0;
        for (const Bytes& bytes : all(a.reads, Role::loss, 8 * n_micro_ * n_losses)) {
          check(bytes, {What::loss, part % n_losses, part / n_losses, step_});
          ++part;
        }
        break;
      }
      case Verb::update:
        a.piece < 0 ? follow_update(a) : follow_piece(a);
        break;
      case Verb::read_weights: {
        const int64_t trained = block(b).n_trained_elements * compute_bytes(),
                      all = block(b).n_elements * compute_bytes();
        if (a.writes.size() != 1 || a.writes[0].n_bytes != drive_weights_bytes(shape_, b)) {
          complain(" reads other bytes than the block's");
          break;
        }
        Bytes bytes = a.writes[0];
        contents_.write(bytes, {});
        bytes.n_bytes = trained;
        contents_.write(bytes, {What::weights, b, 0, drive_[{b, 0}]});
        bytes.offset += trained;
        bytes.n_bytes = all - trained;
        contents_.write(bytes, {What::weights, b, 0, 0, 0, trained});
        break;
      }
      case Verb::write_grads:
        follow_grads(a, a.reads, a.writes);
        break;
      case Verb::read_grads:
        follow_grads(a, a.writes, a.reads);
        break;
      case Verb::fetch_states:
        write_all(a, Role::states, state_record(shape_, b, a.piece).update_bytes,
                  piece_of(a, drive_[{b, a.piece}]));
        break;
      case Verb::send_states:
        check_all(a, Role::states, state_record(shape_, b, a.piece).n_bytes,
                  piece_of(a, version_ + 1));
        drive_[{b, a.piece}] = version_ + 1;
        break;
      case Verb::commit:
        for (const auto& piece : pieces_)
          if (drive_[piece] != version_ + 1) complain(" leaves a piece out");
        break;
      default:
        for (size_t i = 0; i < a.reads.size(); ++i)
          contents_.copy(a.writes.at(i), a.reads[i]);
    }
    for (const Bytes& bytes : a.writes)
      if (bytes.role == Role::dead) contents_.write(bytes, {});
  }

  int64_t grads_n(int b) const { return shape_.n_grad_elements(b); }

  /** A piece's gradients between memory and the block's own place on the drive. */
  void follow_grads(const Action& a, const std::vector<Bytes>& memory, std::vector<Bytes> drive) {
    std::erase_if(drive, [](const Bytes& bytes) { return bytes.role == Role::dead; });
    const int64_t from = a.piece * shape_.state_piece_elements,
                  n = std::min(shape_.state_piece_elements,
                               block(a.block).n_trained_elements - from);
    const bool writes = a.verb == Verb::write_grads;
    const Bytes at = {layout_.segment(a.block, Segment::grads), from * grad_width(a.block),
                      n * grad_width(a.block), Role::grads};
    const int64_t whole = (at.n_bytes + kDrivePage_bytes - 1) / kDrivePage_bytes * kDrivePage_bytes;
    if (drive != std::vector{at} || memory.empty() ||
        memory.front().n_bytes != (writes ? at.n_bytes : whole))
      return complain(" moves other bytes than the piece's");
    Bytes in_memory = memory.front();
    if (!writes) contents_.write(in_memory, {});
    in_memory.n_bytes = at.n_bytes;
    check_grads(writes ? in_memory : at, a.block, at.offset, shape_.n_blocks());
    writes ? contents_.copy(at, in_memory) : contents_.copy(in_memory, at);
  }

  /** A micro-batch's gradients become part of the sum. */
  void follow_sum(const Action& a) {
    const int b = a.block;
    check_all(a, Role::sum, a.micro > 0 ? 4 * grads_n(b) : 0, {What::sum, b, 0, step_, a.micro});
    write_all(a, Role::sum, 4 * grads_n(b), {What::sum, b, 0, step_, a.micro + 1});
  }

  void follow_pass(const Action& a) {
    const int b = a.block, m = a.micro;
    const bool is_backward = a.verb == Verb::backward, has_backward = b >= shape_.first_backward();
    for (const Bytes& bytes : all(a.reads, Role::weights, block(b).n_elements * compute_bytes()))
      check_weights(bytes, b, 0);
    int64_t borrowed_bytes = 0;
    for (int i = 0; i < static_cast<int>(block(b).borrowed.size()); ++i)
      borrowed_bytes += shape_.borrowed_tensor(b, i).n_elements * compute_bytes();
    int i = 0;
    for (const Bytes& bytes : all(a.reads, Role::borrowed, borrowed_bytes)) {
      const int owner = block(b).borrowed[i].block;
      check_weights(bytes, owner, shape_.borrowed_tensor(b, i++).offset);
    }
    for (Role role : {Role::batch, Role::batch_on_host})
      check_all(a, role, shape_.batch_bytes, {What::batch, 0, m, step_});
    check_values(a);
    // Activations that selective makes again lie apart from those it keeps, but for a block without
    // a backward pass.
    const bool is_apart = has_backward && shape_.trains &&
                          block(b).activations == Activations::selective &&
                          block(b).saved_recomputed_bytes > 0 && block(b).saved_kept_bytes() > 0;
    const int64_t apart = is_apart ? block(b).saved_recomputed_bytes : 0;
    const Content kept{What::saved, b, m, step_}, recomputed{What::saved_recomputed, b, m, step_};
    if (is_backward || (a.verb == Verb::recompute && is_apart))
      check_all(a, Role::saved, block(b).saved_bytes - apart, kept);
    if (!is_backward) {
      write_all(a, Role::saved_recomputed, apart, recomputed);
      if (a.verb == Verb::recompute && is_apart) return;
      write_all(a, Role::saved, block(b).saved_bytes - apart, kept);
      write_values(a);
      if (block(b).has_loss)
        write_all(a, Role::loss, 8, {What::loss, shape_.loss_index(b), m, step_});
      return;
    }
    check_all(a, Role::saved_recomputed, apart, recomputed);
    write_values(a);
    const bool wants_grads = shape_.has_grads(b);
    write_all(a, Role::grads, wants_grads ? grads_n(b) * compute_bytes() : 0,
              {What::grads, b, m, step_});
    const bool is_on_device =
        block(b).place.grads == Place::device || shape_.order == AccumulationOrder::vertical;
    if (wants_grads && has_sum(b) && is_on_device) follow_sum(a);
  }

  Content piece_of(const Action& a, int version) const {
    return {What::states, a.block, a.piece, version};
  }
  /** Elements of a piece are updated in a slot; passes find the weights where they always do. */
  void follow_piece(const Action& a) {
    const int b = a.block;
    const StateRecord record = state_record(shape_, b, a.piece);
    if (each_decides_) check_all(a, Role::square_sum, 8, {What::square_sum, b, 0, step_});
    for (const Bytes& bytes : all(a.reads, Role::grads, record.n_elements * grad_width(b)))
      check_grads(bytes, b, record.begin * grad_width(b), shape_.n_blocks());
    const bool reads_weights = shape_.weights_are_master() || shape_.split_master;
    check_all(a, Role::states, record.update_bytes, piece_of(a, version_));
    write_all(a, Role::states, record.n_bytes, piece_of(a, version_ + 1));
    if (block(b).place.weights == Place::nvme) {
      // In the slot, too, and frozen ones with them.
      const bool has_frozen = record.n_elements < shape_.state_piece_elements &&
                              block(b).n_elements > block(b).n_trained_elements;
      if ((reads_weights || has_frozen) != (record.update_bytes == record.n_bytes))
        complain(" works on other weights than it has");
      return;
    }
    const int64_t weights_bytes = record.n_elements * compute_bytes(),
                  first_byte = record.begin * compute_bytes();
    const RegionId weights = layout_.segment(b, Segment::weights);
    Content content = state_of(b, weights, version_);
    content.from = first_byte;
    check_all(a, Role::weights, reads_weights ? weights_bytes : 0, content);
    content.step = version_ + 1;
    for (const Bytes& bytes : all(a.writes, Role::weights, weights_bytes))
      if (bytes.region != weights || bytes.offset != first_byte)
        complain(" writes its weights elsewhere");
    write_all(a, Role::weights, weights_bytes, content);
  }

  /** Weights are updated in a slot; only a send brings them home, and the next step finds out. */
  void follow_slot(const Action& a) {
    const int64_t n_bytes = block(a.block).n_trained_elements * compute_bytes();
    const bool reads = shape_.weights_are_master() || shape_.split_master;
    check_all(a, Role::weights, reads ? n_bytes : 0, {What::weights, a.block, 0, version_});
    write_all(a, Role::weights, n_bytes, {What::weights, a.block, 0, version_ + 1});
    for (const Bytes& bytes : a.writes)
      if (bytes.role == Role::weights &&
          std::ranges::find(layout_.weight_slots, bytes.region) == layout_.weight_slots.end())
        complain(" updates no slot");
  }

  void follow_update(const Action& a) {
    const int b = a.block;
    if (each_decides_) check_all(a, Role::square_sum, 8, {What::square_sum, b, 0, step_});
    for (const Bytes& bytes :
         all(a.reads, Role::grads, block(b).n_trained_elements * grad_width(b)))
      check_grads(bytes, b, 0, shape_.n_blocks());
    const bool is_in_slot = is_updated_in_slot(b);
    if (is_in_slot) follow_slot(a);
    for (const Bytes& bytes : a.reads)
      if (bytes.role == Role::states || (bytes.role == Role::weights && !is_in_slot))
        check(bytes, state_of(b, bytes.region, version_));
    std::vector<RegionId> written;
    for (const Bytes& bytes : a.writes) {
      if (bytes.role == Role::weights && is_in_slot) continue;
      contents_.write(bytes, state_of(b, bytes.region, version_ + 1));
      written.push_back(bytes.region);
    }
    // Those that follow_slot() has seen.
    if (is_in_slot) written.push_back(layout_.segment(b, Segment::weights));
    for (Segment s : lasting_segments(shape_.optim))
      if (std::ranges::find(written, layout_.segment(b, s)) == written.end())
        complain(" leaves " + std::string(ferry::name_of(s, shape_.optim)) + " as they were");
  }

  const StepShape& shape_;
  const Layout layout_;
  Contents contents_;
  std::string name_;
  std::map<int, int> updates_;                   ///< by block: node of its last update
  int commit_ = -1;                              ///< node of the last one
  std::vector<std::pair<int, int>> pieces_;      ///< block, piece: what lies on the drive
  std::map<std::pair<int, int>, int> drive_;     ///< by these: the version there
  std::map<std::pair<int, int>, int> n_writes_;  ///< by value and micro-batch, of this step
  std::array<int, kAllQueues> n_in_queue_{};
  int last_main_ = -1;
  int step_ = 0;
  int version_ = 0;  ///< of the weights
  int n_micro_ = 1;
  bool training_ = true;
  bool each_decides_ = false;
};

}  // namespace

Program make_program(const StepShape& shape, const std::vector<ListRun>& runs) {
  return std::move(ProgramMaker(shape, runs).program);
}

}  // namespace ferry::test
