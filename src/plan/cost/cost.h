#pragma once
// The time of an action of a step's list on a machine, from the table's work and the machine's
// profile; src/plan/cost/simulate.h puts the actions together to a step. Rates of copies and
// updates are those for having the machine's memory alone and for sharing it. No torch, no device.

#include <array>
#include <optional>
#include <vector>

#include "models/core/tensor_table.h"
#include "offload/step/action.h"
#include "offload/step/step_shape.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry {

class CostModel {
 public:
  /** `machine` is a host of the run; where several ranks have it, each has its share. `gpu` is true
   * where the run computes on the profile's GPU, false on its CPU. All arguments outlive the model.
   */
  CostModel(const MachineProfile& machine,
            bool gpu,
            const ModelTable& model,
            const StepShape& shape,
            const BatchShape& batch);
  CostModel(const CostModel&) = delete;

  /** Alone, with nothing beside it; on the GPU what its kernels take once they were launched.
   * `replayed`: the share of it that is replayed as CUDA graphs, of what may be. `ring_bytes`: of a
   * move, those that go through a ring of pinned slots. `rank`: of the list with the action. */
  double seconds(const Action& action,
                 double replayed = 0,
                 int64_t ring_bytes = 0,
                 int rank = 0) const;

  /** The time that launching an action's kernels takes the thread that submits the step's work.
   * That thread may be ahead of the GPU by some launches. */
  struct Submission {
    double seconds = 0, n_launches = 0;
  };
  Submission submission(const Action& action, double replayed = 0) const;

  /** True where the action is recorded as a CUDA graph if one is left. */
  bool may_be_replayed(const Action& action) const;

  /** The factors by which things that run at once slow each other down: copies share lanes with
   * copies the other way, updates share the host's memory with both, and reads of the drive share
   * it with writes. 1 is not at all. */
  struct Beside {
    bool h2d = false, d2h = false, host = false;
    bool nvme_read = false, nvme_write = false;
    bool ring = false;      ///< copies go through the ring of pinned slots
    bool exchange = false;  ///< ranks send each other what they have
  };
  double speed(QueueId queue, const Beside& beside) const;

  /** The time of a step's passes if nothing ever waits and no block recomputes more activations
   * than with `most`; without `most`, as the block's choice says. No step is faster. */
  double passes_seconds(int64_t n_micro, std::optional<Activations> most = {}) const;

  /** The time of copying so many bytes to the GPU at the link's best rate. */
  double least_fetch_seconds(double n_bytes) const;

  /** The least time in which the drive reads and writes what takes so long alone. */
  double least_drive_seconds(double read_s, double write_s) const;

  /** Floating-point operations of a step's forwards and backwards, without recomputation. */
  double step_flops(int n_micro) const;

 private:
  /** A pass of a block. */
  struct Pass {
    double seconds = 0;
    Submission submission{};
  };
  static constexpr int kForward = 0, kBackward = 1, kRemake = 2;
  struct PassTimes {
    Pass launched;
    std::optional<Pass> replayed;  ///< the times of a pass that may run as a CUDA graph
  };
  PassTimes pass_of(int block, const BlockWork& work, int kind) const;
  double work_seconds(const BlockWork& work, bool backward) const;
  /** The times of a pass, or of the recomputation before a backward pass; none where everything is
   * kept. */
  const PassTimes* times_of(const Action& action) const;
  const PassTimes* times_of_again(int block, Activations activations) const;
  const PassTimes& times_of(int block, int kind) const {
    return passes_[static_cast<size_t>(block)][static_cast<size_t>(kind)];
  }
  Pass pass(const Action& action, double replayed) const;
  double copy_seconds(bool to_gpu, int64_t n_bytes) const;
  double ring_seconds(bool to_gpu, int64_t n_bytes) const;
  /** Traffic of host memory in bytes a second, of so many threads that do nothing else. */
  double host_traffic(double n_threads) const;
  /** The share of their speed that is left to so many threads beside others with as much traffic
   * each: an update and the ring's copies want the same memory. */
  double share_beside_ring(double n_threads, double n_others) const;
  double move_seconds(const Action& action, int64_t ring_bytes) const;
  double drive_seconds(const Action& action) const;
  double exchange_seconds(const Action& action, int rank) const;
  /** Beside copies and updates alone. */
  double speed_beside_moves(QueueId queue, const Beside& beside) const;
  /** The share of that speed which is left where ranks send each other bytes, too. */
  double share_beside_exchange(QueueId queue, const Beside& beside) const;
  /** Arithmetic that reads and writes so many bytes, where the action's queue works. */
  double arithmetic_seconds(const Action& action, double n_bytes) const;
  double host_pass_seconds(double n_bytes) const;
  int64_t n_trained_tensors(int block) const;

  const std::optional<MachineProfile> share_;  ///< of a rank, where ranks share a host
  const MachineProfile& machine_;
  bool gpu_;
  const ModelTable& model_;
  const StepShape& shape_;
  BatchShape batch_;
  std::vector<int64_t> copy_sizes_;  ///< measured ones, ascending
  std::vector<std::array<PassTimes, 3>>
      passes_;                                   ///< of each block; recompute: recompute_selected()
  double update_alone_ = 0, update_beside_ = 0;  ///< parameters per second, with all threads
  double ring_bytes_per_s_ = 0;  ///< of the threads that fill a ring or empty it; 0: not known
  int64_t ring_slot_bytes_ = 0;
  int n_ring_threads_ = 1;  ///< of one direction
  double n_update_threads_ = 1;
  ExchangeProfile exchange_;
  CopyRate link_;  ///< the rates of a GPU's link, whatever the host's memory gives
};

}  // namespace ferry
