#pragma once
// How long an action of a step's list takes on a machine, from the table's work and the machine's
// profile: what src/plan/cost/simulate.h puts together to a step. Rates of copies and updates are
// those for having the machine's memory to themselves and for sharing it. No torch, no device.

#include <array>
#include <optional>
#include <vector>

#include "models/tensor_table.h"
#include "offload/step/pager.h"
#include "offload/step/step_shape.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry {

class CostModel {
 public:
  /** `gpu`: the run computes on the profile's GPU; false: on its CPU. All outlive the model. */
  CostModel(const MachineProfile& machine,
            bool gpu,
            const ModelTable& model,
            const StepShape& shape,
            const BatchShape& batch);

  /** Alone, with nothing beside it; on the GPU what its kernels take once they were launched.
   * `replayed`: the share of it that is replayed as CUDA graphs, of what may be. */
  double seconds(const Action& action, double replayed = 0) const;

  /** What launching its kernels takes whoever submits the step's work, who may be ahead of the GPU
   * by some launches. */
  struct Submission {
    double seconds = 0, n_launches = 0;
  };
  Submission submission(const Action& action, double replayed = 0) const;

  /** Whether it is recorded as a CUDA graph where there is one left. */
  bool may_be_replayed(const Action& action) const;

  /** By how much what runs at once slows each other down: copies share lanes with copies the other
   * way, and updates share the host's memory with both. 1: not at all. */
  struct Beside {
    bool h2d = false, d2h = false, host = false;
  };
  double speed(QueueId queue, const Beside& beside) const;

  /** What the passes of a step take if nothing ever waits, and no block makes more saved tensors
   * again than with `most`: no step is faster. */
  double passes_seconds(int64_t n_micro, Activations most) const;

  /** What copying so many bytes to the GPU takes at the link's best. */
  double least_fetch_seconds(double n_bytes) const;

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
    std::optional<Pass> replayed;  ///< of what may run as a CUDA graph
  };
  PassTimes pass_of(int block, const BlockWork& work, int kind) const;
  double work_seconds(const BlockWork& work, bool backward) const;
  /** What a pass does, or what is made again before a backward; none where all is kept. */
  const PassTimes* times_of(const Action& action) const;
  const PassTimes* times_of_again(int block, Activations activations) const;
  const PassTimes& times_of(int block, int kind) const {
    return passes_[static_cast<size_t>(block)][static_cast<size_t>(kind)];
  }
  Pass pass(const Action& action, double replayed) const;
  double copy_seconds(bool to_gpu, int64_t n_bytes) const;
  double update_seconds(int block) const;
  double host_pass_seconds(double n_bytes) const;
  /** Parameters of the block that are updated, and of how many tensors. */
  struct Trained {
    int64_t n_elements = 0, n_tensors = 0;
  };
  Trained trained(int block) const;

  const MachineProfile& machine_;
  bool gpu_;
  const ModelTable& model_;
  const StepShape& shape_;
  BatchShape batch_;
  std::vector<int64_t> copy_sizes_;               ///< measured ones, ascending
  std::vector<std::array<PassTimes, 3>> passes_;  ///< of each block; recompute: Block::recompute()
  double adamw_alone_ = 0, adamw_beside_ = 0;     ///< parameters per second, with all threads
};

}  // namespace ferry
