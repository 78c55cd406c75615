#pragma once
// A model ready to step: memory, device, executor, layer operations and optimizer put together from
// a plan. The training loop, evaluation, tests and (later) the library's users hold one. No torch:
// what includes this compiles in a third of the time.
//
// Where there are several ranks, each has a session, and all make the same calls in the same order.
// A rank gives its micro-batches of a step, as Rounds (offload/step/ranks.h) deals them. The
// last round may leave the last replicas without one. Where a rank leads
// (src/engine/ranks), its session is used as if it were alone: it has all micro-batches, and the
// other ranks follow.
//
//   Session session(model, plan, options);
//   load_weights(model, checkpoint, seed, session.segments());
//   StepReport r = session.step(batches);

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "models/blocks/generation_memory.h"
#include "models/core/loss_kind.h"
#include "models/core/preference.h"
#include "offload/executor/executor.h"
#include "src/engine/cuda/cuda_allocator.h"
#include "src/engine/host_batch.h"
#include "src/engine/optimizer.h"
#include "src/engine/state/drive_states.h"
#include "src/engine/state/segments.h"

namespace ferry {

class ModelRunner;

enum class DeviceKind : uint8_t { cuda, cpu };

/** The state that a session carries from step to step beside its segments. */
struct SessionState {
  int64_t n_steps = 0;  ///< taken, skipped ones too
  OptimizerState optimizer;
};

struct StepReport {
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  float loss_scale = 1;
  bool skipped = false;
  bool clipped = false;
  int64_t n_skipped_in_a_row = 0;
};

/** What an evaluation of a batch gives: loss and logits as Session::evaluate() has them. */
struct Evaluated {
  double loss = 0;
  std::vector<float> logits;
};

struct SessionOptions {
  DeviceKind device = DeviceKind::cpu;
  int device_index = 0;                      ///< on CUDA
  SimulatedOptions simulated;                ///< with DeviceKind::cpu
  HostWaits host_waits = HostWaits::probed;  ///< on CUDA
  int64_t pinned_bytes_max = INT64_MAX;      ///< of host memory, on any device
  bool graphs = true;                        ///< on CUDA, see RunnerOptions
  bool overlap = true;                       ///< updates run under the next step
  int n_workers = 1;                         ///< CPU update threads
  LossKind loss = LossKind::cross_entropy;
  uint64_t seed = 42;
  float label_smoothing = 0;
  PreferenceRule preference;  ///< with LossKind::preference
  /** Of each class, in a training with cross_entropy; empty: all count 1. Evaluations go without.
   */
  std::vector<float> class_weights;
  GenerationShape generation;  ///< as the plan has room for it
  OptimizerOptions optimizer;
  DriveOptions drive;  ///< of states on a drive
  /** Leads to the other ranks, where the shape has some; outlives the session. */
  RankLink* link = nullptr;
  /** Leads to the ranks that share micro-batches with this one, where some do; outlives the
   * session. */
  RankLink* sharing_link = nullptr;
  /** Of the rank that leads, where one does; outlives the session. */
  RankLeader* leader = nullptr;
  std::shared_ptr<void> kept;  ///< lives as long as the session
  /** The text that a generation of these carries: a trainer resumes with it. Of a step that makes
   * it `report` tells, else it is null. */
  std::function<std::string(const SessionState&, const StepReport* report)> describe;
};

class Session {
 public:
  /** All memory of the run is reserved here. `model`, `shape`, `layout` outlive the session. */
  Session(const ModelTable& model,
          const StepShape& shape,
          const Layout& layout,
          const BatchShape& largest,
          const SessionOptions& options);
  ~Session();

  /** One optimizer update over these micro-batches (at most shape.n_micro_max), and over those of
   * the other ranks. */
  StepReport step(std::span<const HostBatch> micro_batches);
  /** The same, or nothing where `drops` says so while the step can still be dropped (see
   * Executor::begin); the session is as before it then. Several ranks drop no step. */
  std::optional<StepReport> step_unless(std::span<const HostBatch> micro_batches,
                                        std::function<bool()> drops);
  /** Begins an update whose passes the caller runs: runner() has their layer operations. The next
   * call is finish(). */
  StepRun begin(std::span<const HostBatch> micro_batches, std::function<bool()> drops = {});
  /** Nothing: the step was dropped. */
  std::optional<StepReport> finish(StepRun& run);
  /** Takes a step in everything but its effect: no state, no random key, no loss scale changes, and
   * no generation on a drive is made. A step that could run out of memory does so here, before step
   * 1. With `settles` the updates have ended when the call returns. Without it they go on under the
   * next step, as a run's do. */
  void rehearse(std::span<const HostBatch> micro_batches, bool settles = true);
  /** Forward only: loss (mean over the batch's label items) and logits (n_seqs_real, n_labels),
   * of a head for tokens (tokens before the tail, n_labels); question answering: start and end;
   * pairs of answers: (n_seqs_real, kPreferenceSums). Of
   * a batch that generates (n_seqs_real, vocabulary) of the last tokens, and no loss. Between two
   * steps it changes nothing that the second one reads. Each replica has a batch, and its loss. */
  double evaluate(const HostBatch& batch, std::vector<float>* logits);
  /** The outputs, as evaluate() gives them, of a micro-batch of this rank's last step. */
  std::vector<float> outputs_of_step(int micro);
  /** Batches that are evaluated at once. Each replica has one, or those that share it; several
   * where weights then come to the device once for all of them, or where stages would wait. */
  int n_evaluated_at_once() const;
  /** At most as many batches. */
  std::vector<Evaluated> evaluate_each(std::span<const HostBatch> batches, bool wants_logits);
  /** The same of this rank's batches alone, where another rank leads. */
  std::vector<Evaluated> evaluate_own(std::span<const HostBatch> batches, bool wants_logits);

  /** Between steps: gives the GPU's memory back to others, weights and states stay in host memory.
   * False where the driver cannot. */
  bool leave_gpu();
  /** The next step follows as if nothing had been. Throws Error(does_not_fit) where the memory is
   * not free now; may be tried again. */
  void return_to_gpu();
  /** The most bytes that LibTorch itself has taken of the GPU at once. */
  int64_t library_peak_bytes() const;
  /** The host memory that leave_gpu() takes, in bytes. */
  int64_t lasting_gpu_bytes() const { return memory_->lasting_gpu_bytes(); }

  /** After this, segments are as the last step left them. */
  Segments& segments();
  /** The values that a checkpoint needs beside the segments; asked while steps go on. */
  const FrozenWeights& frozen_weights() const { return segments_.frozen(); }
  /** States on a drive; null: there are none. */
  StateStore* drive_store() { return drive_.store(); }
  /** Between steps: makes the states as they are the drive's last generation. Steps do so
   * themselves. */
  void commit_states();
  Executor& executor() { return *executor_; }
  Device& device() { return *device_; }
  ModelRunner& runner() { return *runner_; }
  int64_t n_steps() const { return n_steps_; }
  /** The state after the last step that was taken. */
  SessionState state() const { return {.n_steps = n_steps_, .optimizer = optimizer_.state()}; }
  /** Changes an option from the next step on: learning_rate (the schedule's peak), weight_decay or
   * max_grad_norm. */
  void change_optimizer(std::string_view key, double value);
  /** The next step is the one after state.n_steps; the caller fills the segments. */
  void restore(const SessionState& state);
  /** Executor::save(), with the states of all ranks. */
  void save(std::function<void(StateSource&)> write,
            std::function<void()> end,
            std::function<void()> pin = {});
  /** The step as one rank takes it: files of states count bytes so. */
  const StepShape& whole_shape() const { return whole_shape_; }

 private:
  void load(std::span<const HostBatch> micro_batches, bool commits);
  /** The items of a step's micro-batches on all ranks, added in the order of the micro-batches. */
  StepItems items_of_step(std::span<const HostBatch> micro_batches);
  /** Those of a step's micro-batches that are this rank's. */
  std::vector<HostBatch> own_batches(std::span<const HostBatch> micro_batches) const;
  void put_on_drive();
  StepReport report_of(const StepOutcome& outcome) const;
  std::string describe(const SessionState& state, const StepReport* report) const {
    return describe_ ? describe_(state, report) : std::string();
  }

  std::shared_ptr<void> kept_;
  const StepShape& shape_;
  StepShape whole_shape_;
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<RunMemory> memory_;
  std::unique_ptr<CudaLibraryRegion> library_region_;  ///< on CUDA
  std::unique_ptr<ModelRunner> runner_;
  DriveStates drive_;
  std::unique_ptr<Executor> executor_;
  Segments segments_;
  Optimizer optimizer_;
  RankLink* link_;
  RankLeader* leader_;
  int n_micro_ = 0;  ///< of the step in progress, on all ranks
  std::function<std::string(const SessionState&, const StepReport*)> describe_;
  bool is_uncommitted_ = false;  ///< the drive has what no generation has
  int64_t n_steps_ = 0;          ///< steps taken, skipped ones too: keys the random numbers
  float loss_scale_ = 1;         ///< of the step in progress
};

}  // namespace ferry
