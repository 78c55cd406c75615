#include "tests/offload/step/list_program.h"

#include <map>

namespace ferry::test {
namespace {

/** The touches of a run of lists, with contents. */
class Program {
 public:
  Program(const StepShape& shape, const std::vector<ListRun>& runs) : shape_(shape) {
    for (const ListRun& run : runs)
      add(run);
  }
  std::vector<Node> nodes;

 private:
  void add(const ListRun& run) {
    n_micro_ = run.n_micro;
    training_ = run.training;
    each_decides_ = run.each_decides;
    Node load{.name = "load", .queue = kMain, .after = {}, .touches = {}};
    for (int m = 0; m < run.n_micro; ++m)
      load.touches.push_back({{Kind::batch_on_host, m}, true, {0, m, step_}});
    push(std::move(load));
    std::vector<int> node_of;  // of each action
    for (const Action& action : *run.list) {
      Node node{.name = describe(action, shape_) + " of step " + std::to_string(step_),
                .queue = static_cast<int>(action.queue),
                .after = {last_main_},
                .touches = touches_of(action)};
      for (int before : action.after)
        node.after.push_back(node_of[static_cast<size_t>(before)]);
      for (int b : action.after_update)
        if (auto at = updates_.find(b); at != updates_.end()) node.after.push_back(at->second);
      const int index = push(std::move(node));
      node_of.push_back(index);
      if (action.verb == Verb::update_gpu || action.verb == Verb::update_host)
        updates_[action.block] = index;
      const bool waits = run.training ? action.verb == Verb::decide : &action == &run.list->back();
      if (waits) push({.name = "wait", .queue = kMain, .after = {index}, .touches = {}});
    }
    ++step_;
    if (run.training) ++version_;
  }

  int push(Node node) {
    node.place_in_queue = n_in_queue_[static_cast<size_t>(node.queue)]++;
    std::erase(node.after, -1);
    const int index = static_cast<int>(nodes.size());
    if (node.queue == kMain) last_main_ = index;
    nodes.push_back(std::move(node));
    return index;
  }

  const BlockShape& block(int b) const { return shape_.blocks[static_cast<size_t>(b)]; }
  int lane(int micro) const { return shape_.order == AccumulationOrder::vertical ? micro : 0; }
  bool sums() const { return shape_.n_micro_max > 1; }

  /** The tensors that a block borrows and that are not frozen. */
  std::vector<BorrowedExtent> trained_borrowed(int b) const {
    std::vector<BorrowedExtent> trained = block(b).borrowed;
    std::erase_if(trained, [this](const BorrowedExtent& borrowed) {
      return !block(borrowed.block).tensors[static_cast<size_t>(borrowed.tensor)].trainable;
    });
    return trained;
  }

  /** Outputs that no backward reads lie in two regions in turn. */
  Region layer_input(int b, int micro, int slot) const {
    const bool passes = b + 1 < shape_.first_backward();
    if (shape_.layer_inputs_on_host && !passes) return {Kind::layer_input_slot, slot};
    return {Kind::layer_input, passes ? b % 2 : b, lane(micro)};
  }

  /** A block's own gradients once every micro-batch and every borrower before `user` is in. */
  Content final_grads(int b, int user) const {
    Content c{b, n_micro_ - 1, step_, 0};
    for (int u = 0; u < user; ++u)
      for (const BorrowedExtent& borrowed : trained_borrowed(u))
        if (borrowed.block == b) ++c.added;
    return c;
  }

  std::vector<Touch> touches_of(const Action& a) const {
    std::vector<Touch> t;
    const int b = a.block, m = a.micro;
    auto reads = [&](Region r, Content c) { t.push_back({r, false, c}); };
    auto writes = [&](Region r, Content c) { t.push_back({r, true, c}); };
    const Content now{b, m, step_, 0}, weights{b, -1, version_, 0};
    auto read_weights = [&] {
      if (a.slot >= 0) return reads({Kind::weight_slot, a.slot}, weights);
      reads({Kind::weights, b}, weights);
      for (const BorrowedExtent& borrowed : block(b).borrowed)
        reads({Kind::weights, borrowed.block}, {borrowed.block, -1, version_, 0});
    };
    auto saved = [&]() -> Region {
      if (a.saved_slot >= 0) return {Kind::saved_slot, a.saved_slot};
      if (!training_) return {Kind::saved_recomputed};  // wherever there is room: nobody reads it
      if (block(b).saved_bytes > 0 &&
          (block(b).activations == Activations::recompute || b < shape_.first_backward()))
        return {Kind::saved_recomputed};
      return {Kind::saved, b, lane(m)};
    };
    // Activations that selective makes again lie apart from those it keeps.
    const bool has_recomputed = training_ && b >= 0 && b >= shape_.first_backward() &&
                                block(b).activations == Activations::selective &&
                                block(b).saved_recomputed_bytes > 0;
    auto grads = [&]() -> Region {
      if (a.grad_slot >= 0) return {Kind::grad_slot, a.grad_slot};
      return {Kind::grads, b};
    };
    // Writes the block's final gradients: own tensors and borrowed uses together.
    auto write_grads = [&](Content c) {
      writes(grads(), c);
      if (a.grad_slot < 0 && !block(b).borrowed.empty()) writes({Kind::grads_borrowed, b}, c);
    };
    auto write_host_grads = [&](Content c) {
      writes({Kind::grads, b}, c);
      if (!block(b).borrowed.empty()) writes({Kind::grads_borrowed, b}, c);
    };
    switch (a.verb) {
      case Verb::fetch_batch:
        reads({Kind::batch_on_host, m}, {0, m, step_});
        writes({Kind::batch, m}, {0, m, step_});
        break;
      case Verb::fetch_weights:
        reads({Kind::weights, b}, weights);
        for (const BorrowedExtent& borrowed : block(b).borrowed)
          reads({Kind::weights, borrowed.block}, {borrowed.block, -1, version_, 0});
        writes({Kind::weight_slot, a.slot}, weights);
        break;
      case Verb::forward:
      case Verb::recompute:
        read_weights();
        reads({Kind::batch, m}, {0, m, step_});
        if (b > 0) reads(layer_input(b - 1, m, a.input_slot), {b - 1, m, step_});
        if (has_recomputed) writes({Kind::saved_recomputed}, now);
        if (has_recomputed && a.verb == Verb::recompute) break;
        if (block(b).saved_bytes > 0) writes(saved(), now);
        if (b == shape_.n_blocks() - 1)
          writes({Kind::sum_on_gpu, shape_.n_blocks() + m}, now);
        else if (const Region at = layer_input(b, m, a.output_slot);
                 at.kind == Kind::layer_input_slot && a.verb == Verb::recompute)
          writes({Kind::layer_input_grad, (b + 1) % 2, lane(m)}, {});  // for nobody
        else
          writes(at, now);
        if (a.releases_slot) writes({Kind::weight_slot, a.slot}, {});  // poison
        if (a.releases_input) writes({Kind::layer_input_slot, a.input_slot}, {});
        break;
      case Verb::backward: {
        read_weights();
        reads({Kind::batch, m}, {0, m, step_});
        if (b > 0) reads(layer_input(b - 1, m, a.input_slot), {b - 1, m, step_});
        if (block(b).saved_bytes > 0) reads(saved(), now);
        if (has_recomputed) reads({Kind::saved_recomputed}, now);
        if (b < shape_.n_blocks() - 1)
          reads({Kind::layer_input_grad, b % 2, lane(m)}, {b, m, step_});
        if (b > 0) writes({Kind::layer_input_grad, (b - 1) % 2, lane(m)}, {b - 1, m, step_});
        const bool for_nobody = !shape_.has_grads(b);
        const bool sums_here =
            !for_nobody && (sums() || (shape_.tied(b) && shape_.compute != DType::f32)) &&
            (block(b).place == Place::device || shape_.order == AccumulationOrder::vertical);
        if (sums_here) {
          writes({Kind::grad_temp}, now);
          reads({Kind::grad_temp}, now);
          if (m > 0) reads(grads(), {b, m - 1, step_, 0});
        }
        if (!for_nobody) write_grads(now);
        if (a.saved_slot >= 0) writes({Kind::saved_slot, a.saved_slot}, {});
        if (a.releases_slot) writes({Kind::weight_slot, a.slot}, {});
        if (a.releases_input) writes({Kind::layer_input_slot, a.input_slot}, {});
        break;
      }
      case Verb::send_layer_input:
        reads({Kind::layer_input_slot, a.output_slot}, now);
        writes({Kind::layer_input_on_host, b, lane(m)}, now);
        break;
      case Verb::fetch_layer_input:
        reads({Kind::layer_input_on_host, b, lane(m)}, now);
        writes({Kind::layer_input_slot, a.output_slot}, now);
        break;
      case Verb::send_saved:
        reads({Kind::saved_slot, a.saved_slot}, now);
        writes({Kind::saved_on_host, b, lane(m)}, now);
        writes({Kind::saved_slot, a.saved_slot}, {});
        break;
      case Verb::fetch_saved:
        reads({Kind::saved_on_host, b, lane(m)}, now);
        writes({Kind::saved_slot, a.saved_slot}, now);
        break;
      case Verb::square_sum_gpu:
        reads(grads(), final_grads(b, shape_.n_blocks()));
        writes({Kind::sum_on_gpu, b}, {b, -1, step_, 0});
        break;
      case Verb::square_sum_host:
        reads({Kind::grads, b}, final_grads(b, shape_.n_blocks()));
        writes({Kind::square_sum_on_host, b}, {b, -1, step_, 0});
        break;
      case Verb::send_grads: {
        reads({Kind::grad_slot, a.grad_slot}, now);
        const bool staged = shape_.order == AccumulationOrder::horizontal &&
                            (sums() || (shape_.tied(b) && shape_.compute != DType::f32));
        if (staged)
          writes({Kind::staging, a.grad_slot}, now);
        else
          write_host_grads(now);
        if (each_decides_ && shape_.is_trained(b) && sum_from_gpu(b)) {
          reads({Kind::sum_on_gpu, b}, {b, -1, step_, 0});
          writes({Kind::arrived_sum, b}, {b, -1, step_, 0});
        }
        writes({Kind::grad_slot, a.grad_slot}, {});
        break;
      }
      case Verb::accumulate:
        reads({Kind::staging, a.grad_slot}, now);
        if (m > 0) reads({Kind::grads, b}, {b, m - 1, step_, 0});
        write_host_grads(now);
        writes({Kind::staging, a.grad_slot}, {});
        break;
      case Verb::combine:
        reads({Kind::grads_borrowed, b}, {b, n_micro_ - 1, step_, 0});
        for (const auto all = trained_borrowed(b); const BorrowedExtent& borrowed : all) {
          Content before = final_grads(borrowed.block, b);
          for (const BorrowedExtent& earlier : all) {
            if (&earlier == &borrowed) break;
            if (earlier.block == borrowed.block) ++before.added;
          }
          reads({Kind::grads, borrowed.block}, before);
          ++before.added;
          writes({Kind::grads, borrowed.block}, before);
        }
        break;
      case Verb::send_step_sums:
        for (int micro = 0; micro < n_micro_; ++micro)
          reads({Kind::sum_on_gpu, shape_.n_blocks() + micro},
                {shape_.n_blocks() - 1, micro, step_, 0});
        if (training_)
          for (int s = 0; s < shape_.n_blocks(); ++s)
            if (shape_.is_trained(s) && sum_from_gpu(s))
              reads({Kind::sum_on_gpu, s}, {s, -1, step_, 0});
        writes({Kind::sums_sent}, {0, 0, step_, 0});
        break;
      case Verb::decide:
        reads({Kind::sums_sent}, {0, 0, step_, 0});
        for (int s = 0; s < shape_.n_blocks(); ++s)
          if (shape_.is_trained(s) && !sum_from_gpu(s))
            reads({Kind::square_sum_on_host, s}, {s, -1, step_, 0});
        writes({Kind::decision}, {0, 0, step_, 0});
        break;
      case Verb::update_gpu:
      case Verb::update_host:
        // Where blocks decide for themselves: each by its own sum, wherever it is known first.
        if (!each_decides_ || block(b).place == Place::device)
          reads({Kind::decision}, {0, 0, step_, 0});
        else
          reads({sum_from_gpu(b) ? Kind::arrived_sum : Kind::square_sum_on_host, b},
                {b, -1, step_, 0});
        reads({Kind::grads, b}, final_grads(b, shape_.n_blocks()));
        reads({Kind::states, b}, weights);
        writes({Kind::states, b}, {b, -1, version_ + 1, 0});
        writes({Kind::weights, b}, {b, -1, version_ + 1, 0});
        break;
    }
    return t;
  }

  /** The square sum of this block's gradients is taken on the GPU: they pass through it complete.
   */
  bool sum_from_gpu(int b) const {
    if (block(b).place == Place::device) return true;
    return !shape_.tied(b) &&
           (shape_.order == AccumulationOrder::vertical || shape_.n_micro_max == 1);
  }

  const StepShape& shape_;
  std::map<int, int> updates_;  ///< by block: node of its last update
  std::array<int, kAllQueues> n_in_queue_{};
  int last_main_ = -1;
  int step_ = 0;
  int version_ = 0;  ///< of the weights
  int n_micro_ = 1;
  bool training_ = true;
  bool each_decides_ = false;
};

}  // namespace

std::vector<Node> make_program(const StepShape& shape, const std::vector<ListRun>& runs) {
  return Program(shape, runs).nodes;
}

}  // namespace ferry::test
