#pragma once
// The actions of a training list that follow a block's backward: gradients are added and sent,
// their norm is taken, the step is decided and blocks are updated. Private to the pager.

#include <functional>
#include <span>
#include <vector>

#include "offload/step/list_draft.h"
#include "offload/step/pager.h"
#include "offload/step/passes.h"
#include "offload/step/slot_pool.h"

namespace ferry {

/** The step sums of a block or, behind those of the blocks, of a micro-batch. */
inline constexpr int64_t kSum_bytes = sizeof(double);
constexpr int64_t step_sum_offset(int index) {
  return index * kSum_bytes;
}

class GradientActions {
 public:
  /** All but the last two arguments outlive this. */
  GradientActions(const StepShape& shape,
                  const Layout& layout,
                  ListDraft& draft,
                  std::span<const BlockPass> passes,
                  const Rounds& rounds,
                  UpdateOrder order,
                  bool each_decides);

  /** Tells a backward, pass `t`, where its gradients go: to a slot where they leave for the
   * host, else to where they stay; through a region of their own where they are added there.
   * Returns the place of the sum. */
  RegionId choose_place(Action& run, int t);
  /** Follows the backward of a micro-batch, which left its gradients or their sum `at`. */
  void after_backward(int b, int micro, bool is_last, RegionId at);
  /** Makes a block's weights ready to be updated in a slot of the device, which it returns. */
  using WeightSlot = std::function<RegionId(int block)>;
  /** The same where there are several ranks: each gets its part of the gradients of the ranks with
   * a micro-batch in the round, and adds them in the order of ranks. */
  void exchange(int b, RegionId at, int round);
  /** Pass `t` is run by other ranks alone: this one has no micro-batch in the round. */
  void take_parts(int b, int t);
  /** The exchange of pass `t`, whose gradients wait since this rank ran it. */
  void give(int b, int t);
  /** Follows the last backward. */
  void finish(int n_micro, const WeightSlot& weight_slot);
  void send_step_sums();

 private:
  std::vector<std::vector<int>> backwards_of_blocks(std::span<const BlockPass> passes) const;
  const BlockShape& shape_of(int b) const { return shape_.blocks[b]; }
  const BlockLayout& block(int b) const { return layout_.block(b); }
  int64_t grad_bytes(int b) const {
    return block(b).n_grad_elements * static_cast<int64_t>(size_of(shape_.compute));
  }
  int64_t sum_bytes(int b) const {
    return block(b).n_grad_elements * static_cast<int64_t>(size_of(block(b).grad_type));
  }
  /** Final gradients of the block are on the device at some time. */
  bool norm_on_device(int b) const { return !block(b).sums_on_host && !block(b).is_tied; }
  /** Its gradients leave the slot of its backward. */
  bool uses_slot(int b) const {
    return block(b).grads_on_host || block(b).writes_grads_to_drive || shape_.cuts_blocks();
  }
  /** This rank adds the gradients of its own micro-batches. */
  bool sums_own() const { return !shape_.cuts_blocks() || shape_.exchanges_sums(); }
  int grad_slot(int b, int t);
  void send_grads(int b, int micro, RegionId slot);
  /** Gradients or sums that some ranks send each other at once. */
  struct Parts {
    int round = 0;
    std::vector<int> from;  ///< replicas
    bool are_first = false, are_last = false;
  };
  void receive_parts(int b, RegionId slot, const Parts& parts);
  void add_parts(int b, const Parts& parts);
  /** To the host, where the device is another. */
  void move_sum(int b, Action& send) const;
  void write_to_drive(int b, RegionId slot);
  void write_piece(int b, int piece, Bytes from, RegionId releases);
  static Action combine_of(int user, bool is_on_host);
  void add_combine(Action combine);
  void combine_across(int user, Bytes use, const Bytes& sum, bool to_host);
  /** One action for all that a block borrows from where its own gradients are; users in forward
   * order. */
  void combine_tied();
  void square_sum(int b, QueueId queue, RegionId grads, RegionId sums);
  void square_sums();
  void decide(int n_micro);
  void update_as_grads_arrive(int b);
  void update_in_need_order(const WeightSlot& weight_slot);
  /** Weights lie in the slot, where there is one. */
  void update(int b, RegionId slot = -1);
  void send_weights(int b, RegionId slot);
  /** Final gradients from the host to a slot. */
  RegionId fetch_grads(int b);
  Action update_of(int b) const;
  void update_pieces(int b);
  void update_piece(int b, int piece, RegionId slot);
  /** Blocks with states on a drive, in the order of their updates. */
  std::vector<int> drive_blocks(std::span<const BlockPass> passes) const;
  /** Reads the next piece into its slot, if there is one. */
  void fetch_next_piece();
  /** Reads the gradients of pieces whose states are read and whose gradients are written. */
  void read_grads();
  void fill_state_slots();
  bool updates_early(int b) const {
    return order_ == UpdateOrder::as_grads_arrive && block(b).is_trained &&
           block(b).updates_on_host && !block(b).is_tied && !shape_of(b).updates_late;
  }
  int64_t trained_bytes(int b, Segment s, int64_t n_elements) const {
    return bytes_of_elements(shape_, b, s, n_elements);
  }

  static constexpr int64_t kSum_element_bytes = sizeof(float);
  const StepShape& shape_;
  const Layout& layout_;
  ListDraft& draft_;
  std::span<const BlockPass> passes_;
  const Rounds& rounds_;
  UpdateOrder order_;
  bool each_decides_;
  bool is_vertical_;
  int n_passes_;
  SlotPool grads_;                  ///< holds blocks, or passes where each micro-batch's leave
  int grad_slot_ = -1;              ///< the last backward's
  size_t n_sums_ = 0;               ///< of several ranks', that went through regions of the device
  Indexed<bool> updated_;           ///< by block
  std::vector<Bytes> square_sums_;  ///< each block's, as the decision finds it
  int decide_ = -1;
  struct StatePiece {
    int block = 0, piece = 0;
  };
  std::vector<StatePiece> pieces_;  ///< on a drive, in the order of their updates
  size_t n_fetched_ = 0;            ///< of these
  size_t n_grads_read_ = 0;         ///< of these, or none to be read
  std::vector<bool> has_written_;   ///< by block: its gradients
  size_t n_windows_ = 0;            ///< of gradients, that were used
};

}  // namespace ferry
