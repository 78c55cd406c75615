#pragma once
// A model small enough for hundreds of runs, with arithmetic of its own: every block reads all its
// weights, what it saved, its batch and noise keyed by (step, micro-batch, block), and gives every
// parameter a gradient. A run takes a few steps and returns all bits that training leaves; tests
// compare them between shapes, devices and orders.

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "offload/executor/executor.h"
#include "tests/offload/step/shapes.h"
#include "tests/offload/store/virtual_disk.h"

namespace ferry::test {

/** Layer operations of the toy model: the CPU's, on copies of what lies on a GPU. */
class ToyWork : public ComputeWork {
 public:
  ToyWork(const StepShape& shape, Device& device) : shape_(shape), device_(device) {}
  void forward(const Action& action, const PassMemory& memory) override;
  void backward(const Action& action, const PassMemory& memory) override;
  /** Between steps. */
  /** `ranks`: as they share the step's micro-batches. */
  void begin_step(int step, const Ranks& ranks) {
    step_ = step;
    ranks_ = ranks;
  }
  /** Called before each forward, recompute and backward: to throw or to wait in. */
  std::function<void(const Action&)> before;
  /** May spoil the gradients that a backward has made. */
  std::function<void(const Action&, const PassMemory&)> after_backward;

 private:
  void run_backward(const Action& action, const PassMemory& memory);
  /** All weights of the block, folded to a layer input's width. */
  std::vector<float> fold(const Action& action, const PassMemory& memory) const;
  float noise(const Action& action, uint64_t operation, int64_t index) const;
  /** Returns when the compute queue has done all that it was given before. */
  void reach(const std::byte* on_gpu);

  const BlockShape& block(const Action& action) const { return shape_.blocks[action.block]; }

  const StepShape& shape_;
  Device& device_;
  Ranks ranks_;
  int step_ = 0;
};

enum class Pool { threads, tbb };

struct ToyOptions {
  StepShape shape;
  SimulatedOptions device{.poison = true};
  /** Makes another device than the simulated one. */
  std::function<std::unique_ptr<Device>(WorkerPool&)> make_device;
  bool overlap = true;
  Pool pool = Pool::threads;
  int n_workers = 1;
  std::vector<int> n_micro = {3, 1, 3, 2, 3};  ///< of each step
  int skipped_step = 2;
  int evaluate_after = -1;  ///< this step
  int n_evaluated = 1;      ///< micro-batches of each rank in an evaluation
  bool clips = true;        ///< false: blocks are updated as their gradients arrive
  bool enters = false;      ///< passes run in the thread that steps
  std::function<void(StepList&)> fault;
  RankLink* link = nullptr;  ///< to the other ranks of the shape
};

/** Everything a run leaves: equal bits, equal runs. */
struct ToyResult {
  std::vector<std::byte> states;  ///< weights, master, m, v of every tensor
  std::vector<double> losses;     ///< of each step
  std::vector<double> square_sums;
  std::vector<double> evaluations;
  bool operator==(const ToyResult&) const;
};

/** All that a run owns, for tests that look inside one. */
class ToyRun {
 public:
  explicit ToyRun(const ToyOptions& options, std::unique_ptr<WorkerPool> pool = nullptr);
  /** Writes the batches of the step, whose passes are the caller's. */
  StepRun begin(int n_micro);
  /** Writes the batches of the step and takes it. */
  StepOutcome step(int n_micro);
  /** Begins the step and drops it when it asks for the n-th time; false where it has gone too far
   * by then and was taken. The next step() is the same one. */
  bool drop_step(int n_micro, int n_asked, const std::function<void(int asked)>& look = {});
  /** The loss of the first micro-batch. */
  double evaluate();
  /** Waits for updates under way. */
  ToyResult result();
  /** As they are: this rank's part of each tensor's segments. */
  std::vector<std::byte> states() const;
  /** The same, segment by segment of each tensor. */
  std::vector<std::vector<std::byte>> states_by_segment() const;
  /** Square sums of each tensor's gradients as the last step left them, block by block. */
  std::vector<double> square_sums() const;
  /** Master and weights of each tensor, block by block. */
  std::vector<std::vector<std::byte>> tensors() const;
  Executor& executor() { return *executor_; }
  /** States that the shape keeps on a drive; null: it keeps none there. */
  ExtentStore* store() { return store_ ? &*store_ : nullptr; }
  const RunMemory& memory() const { return memory_; }
  Device& device() { return *device_; }
  /** Gives the GPU's memory away and takes it again; updates of host blocks go on. */
  bool leave_and_return(const std::function<void()>& meanwhile = {}) {
    executor_->settle_gpu();
    if (!memory_.leave_gpu(*device_)) return false;
    if (meanwhile) meanwhile();
    memory_.return_to_gpu(*device_);
    return true;
  }
  ToyWork& work() { return work_; }
  /** Traces the steps from now on. */
  StepTracer& trace() {
    executor_->set_tracer(&tracer_.emplace(*device_, options_.shape));
    return *tracer_;
  }
  /** Replaces the decision's own rule. */
  std::function<Decision(const StepSums&)> decide;

 private:
  std::optional<StepOutcome> take(StepRun& run);
  void write_batches(const Ranks& ranks, int n_micro);
  void spoil_batches(int n_micro);
  void note(const StepOutcome& outcome);
  UpdateRule rule();
  std::vector<simd::UpdateStep> steps_of(float factor) const;
  void make_store();
  void write_weights();
  /** Micro-batches of a step of n that this rank has. */
  int n_own(int n_micro) const {
    return Rounds(options_.shape.ranks, n_micro).n_of(options_.shape.ranks.rank);
  }
  void write_bytes(int block, Segment segment, int64_t offset, std::span<const std::byte> bytes);
  void read_bytes(int block, Segment segment, int64_t offset, std::span<std::byte> bytes) const;
  bool is_on_drive(int block, Segment segment) const {
    const RegionId id = layout_.segment(block, segment);
    return id >= 0 && layout_.region(id).place == Place::nvme;
  }

  ToyOptions options_;
  Layout layout_;
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<Device> device_;
  RunMemory memory_;
  ToyWork work_;
  std::optional<StepTracer> tracer_;  // outlives the executor's work
  std::optional<VirtualDisk> disk_;
  std::optional<ExtentStore> store_;
  std::optional<StateStore> states_;
  std::unique_ptr<Executor> executor_;
  int step_ = 0;
  int n_updates_ = 0;
  ToyResult result_;
};

ToyResult run_toy(const ToyOptions& options);

/** The content of a checkpoint: all tensors of all blocks, whatever order they come in. */
struct Saved {
  std::map<int, std::vector<std::byte>> bytes;  // by block
  bool has_ended = false;
};

/** Appends the block's states, in pieces of an odd size. */
void read_block(const StepShape& shape, BlockStates& block, std::vector<std::byte>& into);
/** Saves all as it is, under the next steps. */
void save(ToyRun& run, const StepShape& shape, Saved& saved);

/** The same on a disk that stands before one of the blocks, counted as they are saved, until it is
 * told to move. Outlives the saving. */
class StandingDisk {
 public:
  StandingDisk(ToyRun& run, const StepShape& shape, int stands_before);
  StandingDisk(const StandingDisk&) = delete;
  StandingDisk& operator=(const StandingDisk&) = delete;
  void move() {
    moves_ = true;
    moves_.notify_all();
  }
  Saved saved;

 private:
  std::atomic<bool> moves_ = false;
  int n_blocks_ = 0;  // on the save queue
};

}  // namespace ferry::test
