#pragma once
// Walks the list of a step: submits each action to its queue after what it waits for, moves the
// bytes itself, and calls ComputeWork for what needs layer operations. One object a run; step() is
// called by the training loop. Between two calls updates are under way (each block's weights are
// fetched after its own update), a checkpoint may be, and what the host does for a dropped step.

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "offload/device/device.h"
#include "offload/device/host/cpu_math.h"
#include "offload/executor/run_memory.h"
#include "offload/executor/state_window.h"
#include "offload/executor/step_tracer.h"
#include "offload/step/layout.h"
#include "offload/step/pager.h"

namespace ferry {

/** The addresses of a pass's bytes, found once when its list is made. Null where the pass has none.
 */
struct ActionMemory {
  std::byte* weights = nullptr;  ///< compute type
  std::vector<std::byte*> borrowed;
  std::byte* saved = nullptr;
  std::byte* saved_recomputed = nullptr;  ///< a selective block's recomputed activations
  std::vector<std::byte*> ports;          ///< values, by BlockShape::ports
  std::byte* grads = nullptr;  ///< compute type, this micro-batch's; borrowed uses behind the
                               ///< trained prefix; null where none is wanted
  std::byte* batch = nullptr;
  std::byte* loss = nullptr;  ///< fp32; null but for forwards of the last block
};

/** Layer operations, run inside the compute queue's work. Implemented by src/engine; a test's own
 * arithmetic in tests/offload. */
class ComputeWork {
 public:
  virtual ~ComputeWork() = default;
  virtual void forward(const Action& action,
                       const ActionMemory& memory) = 0;  ///< also Verb::recompute
  virtual void backward(const Action& action, const ActionMemory& memory) = 0;
};

/** Facts about a step's gradients, once all have been summed. */
struct StepSums {
  double square_sum = 0;          ///< the sum over all trained blocks
  bool has_finite_block = false;  ///< the gradients of one of them at least are finite
};

/** The optimizer's decision on a step's gradients. */
struct Decision {
  bool skip = false;                    ///< overflow or non-finite norm: no state changes
  std::vector<simd::UpdateStep> steps;  ///< by TensorExtent::group
};

struct StepOutcome {
  double loss = 0;        ///< sum of the micro-batches' contributions, in order
  double square_sum = 0;  ///< the square sum of the gradients as summed (scaled by the loss scale)
  Decision decision;
};

/** The way in which the optimizer comes to its decision. */
struct UpdateRule {
  std::function<Decision(const StepSums&)> decide;  ///< called on the decision queue
  /** The decision's steps, where they depend on no gradient (neither clipping nor loss scaling):
   * blocks are updated as their gradients arrive, and one whose gradients are not finite stays as
   * it is, whatever lives where. Empty: all blocks wait for the decision, and it says skip or go.
   */
  std::vector<simd::UpdateStep> steps_ahead;
  /** The metadata of the generation that the step makes, where states live on a drive: a trainer
   * resumes with it. Called after decide, on the same queue; empty: none. */
  std::function<std::string(const StepOutcome&)> describe;
  /** False: the step makes no generation (a rehearsal), and the last one stays. */
  bool commits = true;
};

/** A range of bytes of a segment, and host memory of the same size. For a split master the bytes
 * are those of whole fp32 values, which the master and the weights are together. */
struct StatePiece {
  Segment segment{};
  int64_t offset_bytes = 0;
  std::span<std::byte> to;
};

/** Reads one block's segments on the save queue. */
class BlockStates {
 public:
  /** Counts in n_read_bytes what read() has done. */
  BlockStates(const StepShape& shape,
              Device& device,
              WorkerPool& pool,
              const RunMemory& memory,
              StateWindow* window,
              int block,
              std::atomic<int64_t>& n_read_bytes)
      : shape_(shape),
        device_(device),
        pool_(pool),
        memory_(memory),
        window_(window),
        block_(block),
        n_read_bytes_(n_read_bytes) {}
  int block() const { return block_; }
  /** Copies all pieces, from the GPU itself or on the workers, who then call `look` with each
   * piece's index. Pieces of some hundred KiB keep all workers busy and are still in their caches.
   */
  void read(std::span<const StatePiece> pieces, const std::function<void(size_t piece)>& look);

 private:
  /** The piece's bytes that lie in this place, and where in it they are wanted. A split master has
   * two parts, the upper halves first, which may lie in two places. */
  std::vector<HostCopy> parts_of(const StatePiece& piece, Place place) const;
  /** The bytes of a piece that lies on a drive. */
  void read_from_drive(const StatePiece& piece);
  bool is_split(const StatePiece& piece) const {
    return shape_.split_master && piece.segment == Segment::master;
  }

  const StepShape& shape_;
  Device& device_;
  WorkerPool& pool_;
  const RunMemory& memory_;
  StateWindow* window_;
  int block_;
  std::atomic<int64_t>& n_read_bytes_;
};

class Executor {
 public:
  /** `overlap`: updates run under the next step; false: step() waits for them. `store` has the
   * states that the shape keeps on a drive; null: it keeps none there. */
  Executor(const StepShape& shape,
           Device& device,
           WorkerPool& pool,
           RunMemory& memory,
           ComputeWork& work,
           bool overlap,
           StateStore* store = nullptr);
  ~Executor();

  /** One optimizer step. Batches are in the layout's host batch regions; they may be rewritten when
   * step() returns. Until the first update is submitted (after the decision, or with steps_ahead
   * before the end of the backward) nothing lasting has changed: where `drops` says so by then, the
   * step ends there without effect, the GPU's queues are empty, and there is no outcome. It is
   * asked again and again; the GPU has at most about two seconds of work ahead then. */
  std::optional<StepOutcome> step(int n_micro,
                                  const UpdateRule& rule,
                                  const std::function<bool()>& drops = {});
  /** Forward only, micro-batch 0: returns its loss. */
  double evaluate();
  /** Waits for updates under way, and for a checkpoint: segments may be read after it. */
  void settle();
  /** Waits until nothing is under way on the GPU and what lies there is as the last step left it;
   * the host's updates go on, and so does a checkpoint (RunMemory::read_lasting). */
  void settle_gpu();

  /** Between steps, after settle(): states that live on a drive. Null: none do. */
  StateWindow* state_window() { return window_ ? &*window_ : nullptr; }
  /** Commits what was written through the window, as the state before the next step. */
  void commit_states(std::string_view metadata);

  /** The seconds that the last step's updates of the blocks in host memory take by themselves, with
   * nothing beside them. For benchmarks: the updates happen once more, so the states are no run's
   * after it. Runs in the caller's thread, after settle(). */
  double repeat_host_updates();

  /** Gives every block as the last step leaves it to `write`, on the save queue, then calls `end`;
   * returns at once. Steps go on meanwhile: the next update of a block of the host waits for its
   * own bytes, the next decision for those of all blocks on the GPU. What they throw fails the step
   * in progress. One at a time.
   *
   * `pin` is called before, where there is one: the last step's generation of the states on a drive
   * is the committed one then, and stays it until the call ends. `write` leaves out what is in that
   * generation, so that no update of these blocks waits. */
  void save(std::function<void(BlockStates&)> write,
            std::function<void()> end,
            std::function<void()> pin = {});
  bool is_saving();
  /** Memory that starts on a page, for what writes a checkpoint. */
  std::span<std::byte> save_buffer() const;
  /** Waits until `end` has returned, which lasts as long as the disk takes. */
  void await_saving();

  /** Marks what the steps from now on submit; null ends that. `tracer` outlives all work that is
   * under way. */
  void set_tracer(StepTracer* tracer) { tracer_ = tracer; }

  /** Limits the unfinished actions of the compute queue, for every step. For tests. */
  void set_run_ahead(size_t n_actions) { fixed_run_ahead_ = n_actions; }
  /** The number of times that the stepping thread has waited for the device. For tests. */
  int64_t n_host_waits() const { return n_host_waits_; }
  /** Called in place of each action's work, which it is given to run. For tests: what the work
   * touches. */
  using Around = std::function<void(const Action&, const std::function<void()>& work)>;
  void set_around(Around around) { around_ = std::move(around); }
  /** Drops the waits of some actions (a planted fault). For tests. */
  void set_fault(std::function<void(StepList&)> fault) { fault_ = std::move(fault); }
  /** Sets how long a step may stand still before it counts as hung. At first it is
   * FERRY_WATCHDOG_S, or ten minutes. */
  void set_watchdog(std::chrono::milliseconds patience) { watchdog_ = patience; }
  const StepList& training_list(int n_micro, UpdateOrder order = UpdateOrder::after_decision) {
    return training(n_micro, order, order == UpdateOrder::as_grads_arrive).actions;
  }

 private:
  struct ElementRange {
    int64_t begin = 0, n = 0;
  };
  /** The update of some elements of a block's trained prefix, but for where they are and what the
   * decision says of their groups: all of them, or those of a piece of states on a drive. */
  struct SpanUpdate {
    StateRecord record;  ///< of the piece; of a whole block the elements alone
    std::vector<simd::UpdateArgs> tensors;
    struct Part {
      int64_t tensor_offset = 0;  ///< of the tensor in the block's segments
      int group = 0;
      int64_t begin = 0;  ///< of these elements in the span
    };
    std::vector<Part> parts;  ///< as tensors
    /** Between the tensors, in the span: weights that are written, and zero. */
    std::vector<ElementRange> gaps;
    bool has_changed = false;  ///< in the last update: there is something to send
  };
  /** Where the first element of a span lies in memory. */
  struct SpanAddresses {
    std::byte *master = nullptr, *weights = nullptr, *grads = nullptr;
    std::array<std::byte*, simd::kStates_max> states{}, exponents{};
  };
  /** The facts that the updates of a step follow. */
  struct Updates {
    UpdateOrder order{};        ///< the order of the step's list
    bool each_decides = false;  ///< a block whose gradients are not finite stays as it is
    Decision decision;
    std::string metadata;  ///< of the generation of states on a drive
    bool commits = true;
  };
  /** A list, the addresses of its passes' bytes, and the events of its actions. */
  struct ReadyList {
    StepList actions;
    std::vector<EventId> ended;          ///< by action
    std::vector<ActionMemory> memories;  ///< by action; empty but for passes
  };
  /** Checks that no action waits for a later one, so that no list can lock up. */
  void check_order(const StepList& list) const;
  /** Action i of the list, after what it waits for. */
  void submit(const ReadyList& list, size_t i);
  /** Waits for the event as long as actions end; when none has for the watchdog's time, throws
   * Error(machine) that names the oldest unfinished action of each queue. */
  void wait_for(EventId event, const StepList& list) { wait_unless(event, list, {}); }
  /** The same; false as soon as `drops`, where there is one, says so. */
  bool wait_unless(EventId event, const StepList& list, const std::function<bool()>& drops);
  /** Names the oldest unfinished action of each queue, in the order of the lists. */
  std::string unfinished(const StepList& list);
  static std::chrono::milliseconds watchdog_of_environment();
  ReadyList ready(StepList list);
  ActionMemory memory_of(const Action& action) const;
  ReadyList& training(int n_micro, UpdateOrder order, bool each_decides);
  void run(const Action& action, const ActionMemory& memory, Updates& updates);
  void move(const Action& action);
  void backward(const Action& action, const ActionMemory& memory);
  void accumulate(const Action& action);
  void combine(const Action& action);
  void square_sum(const Action& action);
  void decide(const Action& action, Updates& updates);
  /** False where the update leaves everything as it is. */
  bool changes_states(const Action& action, const Updates& updates) const;
  void update(const Action& action, const Updates& updates);
  /** The optimizer's step on the elements of an update. */
  void apply(const Action& action, const Updates& updates);
  /** The last action of the block's update. */
  Action end_of_update(int block) const;
  /** True of the last action of a block's update, or of each of its pieces. */
  bool ends_update(const Action& action) const;
  SpanUpdate& span_of(const Action& action) {
    auto& spans = updates_of_[static_cast<size_t>(action.block)].spans;
    return spans[static_cast<size_t>(std::max(action.piece, 0))];
  }
  SpanAddresses addresses_of(const Action& action, const StateRecord& record) const;
  void fetch_states(const Action& action);
  void send_states(const Action& action);
  void prepare_updates();
  /** `trained`: the block's tensors, ascending. */
  SpanUpdate make_span(int block,
                       std::span<const TensorExtent> trained,
                       const StateRecord& record) const;
  std::byte* address_of(int block, Segment segment, int64_t element) const;
  /** The arithmetic of the place where the action's queue works. */
  DeviceMath& math_of(QueueId queue) {
    return queue == QueueId::compute ? device_.math() : host_math_;
  }
  const BlockShape& block(int b) const { return shape_.blocks[static_cast<size_t>(b)]; }
  /** The bytes as values of a type; null where there are none. */
  template <class Value>
  Value* at(const Bytes& bytes) const {
    return reinterpret_cast<Value*>(memory_.at(bytes.region) + bytes.offset);
  }
  /** By action: the n-th of a queue has the n-th event of that queue, in every list. */
  std::vector<EventId> events_of(const StepList& list);
  void await_updates();
  bool has_frozen(int block) const;
  /** Waits until the compute queue has fewer than run_ahead_ unfinished actions of this step. */
  void stay_near(const ReadyList& list);
  void measure_run_ahead(std::chrono::duration<double> step);
  /** Waits for the bytes that the action's memory may have to give to a checkpoint first; false:
   * the step is to be dropped. */
  bool await_saved(const Action& action, const StepList& list, const std::function<bool()>& drops);
  bool await_dropped(const std::function<bool()>& drops);
  std::optional<StepOutcome> drop_step(const StepList& list);
  void await_idle(std::span<const QueueId> queues, const StepList& list);

  const StepShape& shape_;
  Device& device_;
  WorkerPool& pool_;
  CpuMath host_math_;
  RunMemory& memory_;
  const Layout& layout_;
  ComputeWork& work_;
  bool overlap_;
  std::chrono::milliseconds watchdog_;
  /** By number of micro-batches, update order and whether each block decides. */
  std::map<std::tuple<int, UpdateOrder, bool>, ReadyList> lists_;
  std::array<ReadyList, 2> evaluation_lists_;  ///< without fetches into own slots, and with them
  int64_t own_slots_version_ = -1;             ///< the version of the weights there
  struct BlockUpdate {
    std::vector<SpanUpdate> spans;   ///< the whole block, or its pieces
    std::vector<ElementRange> gaps;  ///< between trained tensors
  };
  std::vector<BlockUpdate> updates_of_;  ///< by block
  StateStore* store_;
  std::optional<StateWindow> window_;
  EventId committed_;
  EventId pinned_;             ///< the last checkpoint has kept its generation
  std::vector<EventId> sent_;  ///< by block: its states to the drive
  std::array<std::vector<EventId>, kQueues> events_;  ///< of actions
  std::vector<EventId> updated_;                      ///< by block
  std::vector<EventId> saved_;                        ///< by block
  std::vector<int> save_order_;                       ///< of blocks
  std::vector<bool> update_waits_for_save_;           ///< by block: its last update
  std::chrono::duration<double> waited_for_disk_{};   ///< in the step in progress
  EventId save_ended_;
  bool is_saving_ = false;  ///< as far as seen
  std::atomic<int64_t> n_saved_bytes_ = 0;
  std::function<void(BlockStates&)> save_write_;
  std::function<void()> save_end_;
  std::vector<double> square_sums_;  ///< by block, of the decision
  std::function<void(StepList&)> fault_;
  Around around_;
  StepTracer* tracer_ = nullptr;
  static constexpr size_t kRunAhead_max = 1'000'000;
  std::vector<size_t> compute_actions_;  ///< actions of the step in progress, as submitted
  size_t run_ahead_ = kRunAhead_max;     ///< actions; two seconds of them once a step was timed
  std::optional<size_t> fixed_run_ahead_;
  int64_t n_host_waits_ = 0;
  /** The host may still be at work for this step, which was dropped. */
  const StepList* dropped_ = nullptr;
  std::array<EventId, kQueues> idle_{};
  const UpdateRule* rule_ = nullptr;
  int n_micro_ = 0;
  /** The updates of the step that is submitted and of the two before: the updates of the last one
   * may be under way, and the commit of the one before that, which the last one's states wait for.
   */
  std::array<Updates, 3> updates_;
  size_t current_ = 0;
  StepOutcome outcome_;
};

}  // namespace ferry
