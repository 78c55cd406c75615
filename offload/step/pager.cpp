#include "offload/step/pager.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "offload/step/layer_input_slots.h"
#include "offload/step/passes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Builds a list pass by pass; holds what lies in each slot and who used it last. */
class ListMaker {
 public:
  ListMaker(const StepShape& shape, int n_micro, bool trains, UpdateOrder order)
      : shape_(shape),
        n_micro_(n_micro),
        trains_(trains),
        order_(order),
        first_backward_(shape.first_backward()),
        passes_(passes_of(shape, n_micro, trains)),
        layer_input_passes_(plan_layer_inputs(shape, passes_, n_micro)),
        weight_slots_(static_cast<size_t>(shape.n_weight_slots)),
        grad_slots_(static_cast<size_t>(shape.n_grad_slots)),
        saved_slots_(static_cast<size_t>(shape.n_saved_slots)),
        layer_input_slots_(static_cast<size_t>(shape.n_layer_input_slots)),
        final_grads_(shape.blocks.size(), -1),
        updated_(shape.blocks.size(), false),
        weight_slot_of_(shape.blocks.size(), -1),
        grad_slot_of_(shape.blocks.size(), -1),
        fetched_before_(shape.blocks.size(), false),
        sent_saved_(shape.blocks.size() * static_cast<size_t>(n_micro), -1),
        sent_layer_input_(sent_saved_) {}

  StepList training() {
    fetch_batches();
    for (size_t t = 0; t < passes_.size(); ++t)
      passes_[t].backward ? backward(t) : forward(t);
    combine_tied();
    square_sums();
    int sums = add({.verb = Verb::send_step_sums, .queue = QueueId::d2h, .after = {last_compute_}});
    decide(sums);
    update_in_need_order();
    return std::move(list_);
  }

  StepList evaluation() {
    fetch_batches();
    for (size_t t = 0; t < passes_.size(); ++t)
      forward(t);
    add({.verb = Verb::send_step_sums, .queue = QueueId::d2h, .after = {last_compute_}});
    return std::move(list_);
  }

 private:
  struct WeightSlot {
    int block = -1;
    int fetch = -1;     ///< action that filled it
    int last_use = -1;  ///< compute action
  };
  struct GradSlot {
    int free_after = -1;  ///< the send that emptied it: the next backward waits for it
    int staging_free_after =
        -1;  ///< the accumulate that read its staging: the next send waits for it
  };
  struct SavedSlot {
    int free_after = -1;  ///< d2h action (forward) or compute action (backward) that read it
  };

  struct LayerInputSlot {
    int fetch = -1;     ///< action that filled it, where that was no forward
    int send = -1;      ///< action that sent what it holds
    int last_use = -1;  ///< compute action
  };

  void fetch_batches() {
    for (int m = 0; m < n_micro_; ++m)
      batches_.push_back(add({.verb = Verb::fetch_batch, .queue = QueueId::h2d, .micro = m}));
  }

  const BlockShape& block_of(int b) const { return shape_.blocks[static_cast<size_t>(b)]; }
  bool on_host(int b) const { return block_of(b).place == Place::host; }
  /** A block that saves nothing, or saves for no backward pass, has nothing to move or to
   * recompute. */
  Activations activations_of(int b) const {
    const bool saves = block_of(b).saved_bytes > 0 && b >= first_backward_;
    const BlockShape& block = block_of(b);
    if (block.activations == Activations::selective && block.saved_recomputed_bytes == 0)
      return Activations::keep;
    return saves ? block.activations : Activations::keep;
  }

  int add(Action action) {
    std::erase_if(action.after, [&](int a) {
      return a < 0 || list_[static_cast<size_t>(a)].queue == action.queue;
    });
    std::sort(action.after.begin(), action.after.end());
    action.after.erase(std::unique(action.after.begin(), action.after.end()), action.after.end());
    list_.push_back(std::move(action));
    int index = static_cast<int>(list_.size()) - 1;
    if (list_.back().queue == QueueId::compute) last_compute_ = index;
    return index;
  }

  /** The pass after `t` in which this block's weights are needed next. */
  size_t next_use(int block, size_t t) const {
    for (size_t k = t; k < passes_.size(); ++k)
      if (passes_[k].block == block) return k;
    return std::numeric_limits<size_t>::max();
  }

  /** Weights of the pass's block in a slot: the one they lie in, or the one whose content is needed
   * last (among equals the one used longest ago, so that the copy runs beside compute). */
  int weights(size_t t, std::vector<int>& after) {
    int b = passes_[t].block;
    if (!on_host(b)) return -1;
    int& at = weight_slot_of_[static_cast<size_t>(b)];
    if (at < 0) {
      size_t best = 0;
      for (size_t s = 1; s < weight_slots_.size(); ++s) {
        auto rank = [&](size_t k) {
          const WeightSlot& w = weight_slots_[k];
          if (w.block < 0)
            return std::pair{std::numeric_limits<size_t>::max(), std::numeric_limits<int>::max()};
          return std::pair{next_use(w.block, t), -w.last_use};
        };
        if (rank(s) > rank(best)) best = s;
      }
      WeightSlot& slot = weight_slots_[best];
      Action fetch{.verb = Verb::fetch_weights,
                   .queue = QueueId::h2d,
                   .block = b,
                   .slot = static_cast<int>(best)};
      if (slot.block >= 0) {
        weight_slot_of_[static_cast<size_t>(slot.block)] = -1;
        list_[static_cast<size_t>(slot.last_use)].releases_slot = true;
        fetch.after.push_back(slot.last_use);
      }
      if (!fetched_before_[static_cast<size_t>(b)]) {  // later fetches follow this one
        fetched_before_[static_cast<size_t>(b)] = true;
        fetch.after_update.push_back(b);
        for (const BorrowedExtent& borrowed : block_of(b).borrowed)
          fetch.after_update.push_back(borrowed.block);
      }
      int action = add(std::move(fetch));
      slot = {b, action, action};
      at = static_cast<int>(best);
    }
    after.push_back(weight_slots_[static_cast<size_t>(at)].fetch);
    return at;
  }

  void used_weights(int slot, int action) {
    if (slot >= 0) weight_slots_[static_cast<size_t>(slot)].last_use = action;
  }

  int take_saved_slot(std::vector<int>& after) {
    int s = next_saved_slot_;
    next_saved_slot_ = (next_saved_slot_ + 1) % shape_.n_saved_slots;
    after.push_back(saved_slots_[static_cast<size_t>(s)].free_after);
    return s;
  }

  int& sent_saved(const BlockPass& pass) {
    return sent_saved_[static_cast<size_t>(pass.block * n_micro_ + pass.micro)];
  }

  int& sent_layer_input(int block, int micro) {
    return sent_layer_input_[static_cast<size_t>(block * n_micro_ + micro)];
  }

  LayerInputSlot& layer_input_slot(int slot) {
    return layer_input_slots_[static_cast<size_t>(slot)];
  }

  /** The slot with the pass's input, fetched where it is not there. */
  int layer_input_input(size_t t, std::vector<int>& after) {
    const LayerInputPass& plan = layer_input_passes_[t];
    if (plan.input_slot < 0) return -1;
    LayerInputSlot& slot = layer_input_slot(plan.input_slot);
    if (plan.fetches_input) {
      const int block = passes_[t].block - 1, micro = passes_[t].micro;
      const int fetch = add({.verb = Verb::fetch_layer_input,
                             .queue = QueueId::h2d,
                             .block = block,
                             .micro = micro,
                             .output_slot = plan.input_slot,
                             .after = {slot.last_use, slot.send, sent_layer_input(block, micro)}});
      // Should it have to go again: the host has it.
      slot = {.fetch = fetch, .send = -1, .last_use = -1};
    }
    after.push_back(slot.fetch);
    return plan.input_slot;
  }

  /** The action has read the pass's input. */
  void used_layer_input(size_t t, int action) {
    if (const int slot = layer_input_passes_[t].input_slot; slot >= 0)
      layer_input_slot(slot).last_use = action;
  }

  void forward(size_t t) {
    const BlockPass& pass = passes_[t];
    const LayerInputPass& layer_input = layer_input_passes_[t];
    Action run{
        .verb = Verb::forward, .queue = QueueId::compute, .block = pass.block, .micro = pass.micro};
    run.slot = weights(t, run.after);
    if (pass.block == 0) run.after.push_back(batches_[static_cast<size_t>(pass.micro)]);
    bool saves_on_host = trains_ && activations_of(pass.block) == Activations::host;
    if (saves_on_host) run.saved_slot = take_saved_slot(run.after);
    run.input_slot = layer_input_input(t, run.after);
    run.releases_input = layer_input.releases_input;
    run.output_slot = layer_input.output_slot;
    if (run.output_slot >= 0) run.after.push_back(layer_input_slot(run.output_slot).send);
    int saved_slot = run.saved_slot, action = add(std::move(run));
    used_weights(list_[static_cast<size_t>(action)].slot, action);
    used_layer_input(t, action);
    if (saves_on_host) send_saved(pass, saved_slot, action);
    if (layer_input.output_slot < 0) return;
    LayerInputSlot& slot = layer_input_slot(layer_input.output_slot) = {.last_use = action};
    if (!layer_input.sends_output) return;
    slot.send = sent_layer_input(pass.block, pass.micro) =
        add({.verb = Verb::send_layer_input,
             .queue = QueueId::d2h,
             .block = pass.block,
             .micro = pass.micro,
             .output_slot = layer_input.output_slot,
             .after = {action}});
  }

  void send_saved(const BlockPass& pass, int saved_slot, int forward) {
    int send = add({.verb = Verb::send_saved,
                    .queue = QueueId::d2h,
                    .block = pass.block,
                    .micro = pass.micro,
                    .saved_slot = saved_slot,
                    .after = {forward}});
    saved_slots_[static_cast<size_t>(saved_slot)].free_after = send;
    sent_saved(pass) = send;
  }

  /** Saved tensors of pass t's micro-batch where the backward reads them. */
  int saved(size_t t, int weight_slot, std::vector<int>& after) {
    const BlockPass& pass = passes_[t];
    switch (activations_of(pass.block)) {
      case Activations::keep:
        return -1;
      case Activations::selective:
      case Activations::recompute: {
        // The tensors that the head's forward pass saved are still there when its backward pass
        // follows at once.
        const BlockPass& before = passes_[t - 1];
        if (!before.backward && before.block == pass.block && before.micro == pass.micro) return -1;
        int again = add({.verb = Verb::recompute,
                         .queue = QueueId::compute,
                         .block = pass.block,
                         .micro = pass.micro,
                         .slot = weight_slot,
                         .input_slot = layer_input_passes_[t].input_slot,
                         .after = after});
        used_weights(weight_slot, again);
        used_layer_input(t, again);
        return -1;
      }
      case Activations::host: {
        Action fetch{.verb = Verb::fetch_saved,
                     .queue = QueueId::h2d,
                     .block = pass.block,
                     .micro = pass.micro};
        fetch.after = {sent_saved(pass)};
        int slot = fetch.saved_slot = take_saved_slot(fetch.after);
        after.push_back(add(std::move(fetch)));
        return slot;
      }
    }
    return -1;
  }

  void backward(size_t t) {
    const BlockPass& pass = passes_[t];
    const int b = pass.block;
    Action run{.verb = Verb::backward, .queue = QueueId::compute, .block = b, .micro = pass.micro};
    run.first_sum = pass.micro == 0;
    run.last_sum = pass.micro == n_micro_ - 1;
    run.slot = weights(t, run.after);
    run.input_slot = layer_input_input(t, run.after);
    run.releases_input = layer_input_passes_[t].releases_input;
    run.saved_slot = saved(t, run.slot, run.after);
    const bool vertical = shape_.order == AccumulationOrder::vertical, sends = sends_grads(b);
    if (sends) {
      // Vertical: the sum stays in its slot through all micro-batches. Horizontal: each goes to the
      // host.
      if (!vertical || run.first_sum) {
        grad_slot_of_[static_cast<size_t>(b)] = next_grad_slot_;
        next_grad_slot_ = (next_grad_slot_ + 1) % shape_.n_grad_slots;
      }
      run.grad_slot = grad_slot_of_[static_cast<size_t>(b)];
      run.after.push_back(grad_slots_[static_cast<size_t>(run.grad_slot)].free_after);
    }
    const bool last = run.last_sum;
    const int saved_slot = run.saved_slot, grad_slot = run.grad_slot;
    int action = add(std::move(run));
    used_weights(list_[static_cast<size_t>(action)].slot, action);
    used_layer_input(t, action);
    if (saved_slot >= 0) saved_slots_[static_cast<size_t>(saved_slot)].free_after = action;
    if (!sends) {
      if (last) final_grads_[static_cast<size_t>(b)] = action;
      return;
    }
    if (vertical && !last) return;
    // The final sum passes through the GPU: its norm is taken there, without a pass over host
    // memory.
    if (last && norm_on_gpu(b) && shape_.is_trained(b))
      final_norm_.push_back(action = add({.verb = Verb::square_sum_gpu,
                                          .queue = QueueId::compute,
                                          .block = b,
                                          .grad_slot = grad_slot}));
    GradSlot& slot = grad_slots_[static_cast<size_t>(grad_slot)];
    int send = add({.verb = Verb::send_grads,
                    .queue = QueueId::d2h,
                    .block = b,
                    .micro = pass.micro,
                    .grad_slot = grad_slot,
                    .after = {action, slot.staging_free_after}});
    slot.free_after = send;
    final_grads_[static_cast<size_t>(b)] = send;
    if (!shape_.sums_on_host(b)) {
      if (last) update_as_grads_arrive(b);
      return;
    }
    int sum = add({.verb = Verb::accumulate,
                   .queue = QueueId::host,
                   .block = b,
                   .micro = pass.micro,
                   .grad_slot = grad_slot,
                   .first_sum = pass.micro == 0,
                   .last_sum = last,
                   .after = {send}});
    slot.staging_free_after = sum;
    final_grads_[static_cast<size_t>(b)] = sum;
    if (last) update_as_grads_arrive(b);
  }

  /** The block's weights are not read any more in this step: its backward has. */
  void update_as_grads_arrive(int b) {
    if (order_ != UpdateOrder::as_grads_arrive || !shape_.is_trained(b) || shape_.tied(b) ||
        block_of(b).updates_late)
      return;
    if (!norm_on_gpu(b)) square_sum_on_host(b);
    updated_[static_cast<size_t>(b)] = true;
    add({.verb = Verb::update_host,
         .queue = QueueId::host,
         .block = b,
         .after = {final_grads_[static_cast<size_t>(b)]}});
  }

  void square_sum_on_host(int b) {
    final_norm_.push_back(add({.verb = Verb::square_sum_host,
                               .queue = QueueId::host,
                               .block = b,
                               .after = {final_grads_[static_cast<size_t>(b)]}}));
  }

  /** Gradients of a frozen block stay where its backward writes them, for nobody. */
  bool sends_grads(int b) const { return on_host(b) && shape_.has_grads(b); }
  bool norm_on_gpu(int b) const { return !shape_.sums_on_host(b) && !shape_.tied(b); }

  /** One action for all that a block borrows; users in forward order, as design 5 adds them. */
  void combine_tied() {
    for (int user = 0; user < shape_.n_blocks(); ++user) {
      std::vector<int> owners;
      for (int i = 0; i < static_cast<int>(block_of(user).borrowed.size()); ++i)
        if (shape_.borrowed_tensor(user, i).trainable)
          owners.push_back(block_of(user).borrowed[static_cast<size_t>(i)].block);
      if (owners.empty()) continue;
      Action combine{.verb = Verb::combine,
                     .queue = on_host(user) ? QueueId::host : QueueId::compute,
                     .block = user,
                     .after = {final_grads_[static_cast<size_t>(user)]}};
      for (int owner : owners)
        combine.after.push_back(final_grads_[static_cast<size_t>(owner)]);
      int action = add(std::move(combine));
      for (int owner : owners)
        final_grads_[static_cast<size_t>(owner)] = action;
    }
  }

  void square_sums() {
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      if (!shape_.is_trained(b)) continue;
      if (!on_host(b))
        final_norm_.push_back(add({.verb = Verb::square_sum_gpu,
                                   .queue = QueueId::compute,
                                   .block = b,
                                   .after = {final_grads_[static_cast<size_t>(b)]}}));
      else if (!norm_on_gpu(b) && !updated_[static_cast<size_t>(b)])  // else taken on the way
        square_sum_on_host(b);
    }
  }

  /** Waits for the GPU's sums, for every norm part made on the host, and for every transfer of the
   * step: what follows may use each slot as new. */
  void decide(int sums) {
    Action decide{.verb = Verb::decide, .queue = QueueId::decision, .after = {sums}};
    for (int action : final_norm_)
      decide.after.push_back(action);
    for (int action : final_grads_)
      decide.after.push_back(action);
    decide_ = add(std::move(decide));
  }

  void update_in_need_order() {
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      if (!shape_.is_trained(b) || updated_[static_cast<size_t>(b)]) continue;
      Verb verb = on_host(b) ? Verb::update_host : Verb::update_gpu;
      QueueId queue = on_host(b) ? QueueId::host : QueueId::compute;
      add({.verb = verb, .queue = queue, .block = b, .after = {decide_}});
    }
  }

  const StepShape& shape_;
  int n_micro_;
  bool trains_;
  UpdateOrder order_;
  int first_backward_;
  std::vector<BlockPass> passes_;
  std::vector<LayerInputPass> layer_input_passes_;  ///< of each pass
  StepList list_;
  std::vector<WeightSlot> weight_slots_;
  std::vector<GradSlot> grad_slots_;
  std::vector<SavedSlot> saved_slots_;
  std::vector<LayerInputSlot> layer_input_slots_;
  std::vector<int> final_grads_;  ///< per block: the action after which its gradients are final
  std::vector<bool> updated_;     ///< per block: as its gradients arrived
  std::vector<int> final_norm_;
  std::vector<int> batches_;  ///< per micro-batch: the fetch of its ids and labels
  std::vector<int> weight_slot_of_;
  std::vector<int> grad_slot_of_;
  std::vector<bool> fetched_before_;
  std::vector<int> sent_saved_;        ///< [block * n_micro + micro]
  std::vector<int> sent_layer_input_;  ///< the same
  int next_grad_slot_ = 0;
  int next_saved_slot_ = 0;
  int last_compute_ = -1;
  int decide_ = -1;
};

}  // namespace

StepList make_training_list(const StepShape& shape, int n_micro, UpdateOrder order) {
  FERRY_CHECK(n_micro >= 1 && n_micro <= shape.n_micro_max, "{} micro-batches, planned {}", n_micro,
              shape.n_micro_max);
  return ListMaker(shape, n_micro, true, order).training();
}

StepList make_evaluation_list(const StepShape& shape) {
  return ListMaker(shape, 1, false, UpdateOrder::after_decision).evaluation();
}

}  // namespace ferry
