#pragma once
// Walks the list of a step: submits each action to its queue after what it waits for, and moves the
// bytes itself; layer operations are the caller's (ComputeWork, or a pass that it enters). One
// object a run. Between two steps updates are under way (each block's weights are fetched after its
// own update), a checkpoint may be, and what the host does for a dropped step.

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
#include "offload/executor/block_states.h"
#include "offload/executor/compute_work.h"
#include "offload/executor/rank_link.h"
#include "offload/executor/run_memory.h"
#include "offload/executor/state_window.h"
#include "offload/executor/step_run.h"
#include "offload/executor/step_tracer.h"
#include "offload/executor/update_rule.h"
#include "offload/step/layout.h"
#include "offload/step/pager.h"

namespace ferry {

/** A list, and by action what its submission needs. Actions have been made once: a step allocates
 * nothing for them. */
struct ReadyList {
  struct Item {
    Executor* executor;
    const Action* action;
    PassMemory memory;  ///< empty but for passes
    EventId ended;
  };
  StepList actions;
  std::vector<Item> items;    ///< by action
  UpdateOrder order{};        ///< of a training list, as is:
  bool each_decides = false;  ///< a block whose gradients are not finite stays as it is
};

class Executor {
 public:
  /** `overlap`: updates run under the next step; false: a step's end waits for them. `store` has
   * the states that the shape keeps on a drive; null: it keeps none there. `link` leads to the
   * other ranks, where the shape has some. */
  Executor(const StepShape& shape,
           Device& device,
           WorkerPool& pool,
           RunMemory& memory,
           bool overlap,
           StateStore* store = nullptr,
           RankLink* link = nullptr);
  ~Executor();

  /** Begins an optimizer step of `n_micro` micro-batches, of all ranks together. Batches are in the
   * layout's host batch regions; they may be rewritten when the run has ended. Until the first
   * update is submitted (after the decision, or with steps_ahead before the end of the backward)
   * nothing lasting has changed: where `drops` says so by then, the step ends there without effect,
   * and the GPU's queues are empty. It is asked again and again; the GPU has at most about two
   * seconds of work ahead then. */
  StepRun begin(int n_micro, UpdateRule rule, std::function<bool()> drops = {});
  /** Begins forwards only, of so many micro-batches of each rank; the outcome has their losses
   * alone. */
  StepRun begin_evaluation(int n_micro = 1);
  /** A whole step in the compute queue; nothing: it was dropped. */
  std::optional<StepOutcome> step(int n_micro,
                                  UpdateRule rule,
                                  ComputeWork& work,
                                  std::function<bool()> drops = {});
  /** A whole evaluation: the losses of this rank's micro-batches. */
  std::vector<double> evaluate(ComputeWork& work, int n_micro = 1);
  /** Waits for updates under way, and for a checkpoint: segments may be read after it. */
  void settle();
  /** Waits until nothing is under way on the GPU and what lies there is as the last step left it;
   * the host's updates go on, and so does a checkpoint (RunMemory::read_lasting). */
  void settle_gpu();

  /** Between steps, after settle(): states that live on a drive. Null: none do. */
  StateWindow* state_window() { return window_ ? &*window_ : nullptr; }

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

  /** Sets how long a step may stand still before it counts as hung. At first it is
   * FERRY_WATCHDOG_S, or ten minutes. */
  void set_watchdog(std::chrono::milliseconds patience) { watchdog_ = patience; }

 private:
  friend class StepRun;
  friend class EnteredPass;
  friend struct ExecutorProbe;  ///< of tests and benchmarks (tests/offload/executor)
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
    UpdateOrder order{};  ///< as ReadyList has it, and each_decides
    bool each_decides = false;
    Decision decision;
    std::string metadata;  ///< of the generation of states on a drive
    bool commits = true;
  };
  /** Put between the executor and its work by ExecutorProbe. */
  struct Hooks {
    std::optional<size_t> run_ahead;
    std::function<void(const Action&, const std::function<void()>& work)> around;
    std::function<void(StepList&)> fault;
    int64_t n_host_waits = 0;  ///< times that the stepping thread has waited for the device
  };
  /** Checks that no action waits for a later one, so that no list can lock up. */
  void check_order(const StepList& list) const;
  /** Submits action i of the list, which is no pass, after the actions that it waits for. */
  void submit(const ReadyList& list, size_t i);
  void submit_pass(const ReadyList& list, size_t i, ComputeWork& layers);
  /** Submits the work before the layer operations of a pass that the caller enters, and turn_. */
  void open_pass(const ReadyList& list, size_t i);
  /** Submits the work behind the layer operations. */
  void close_pass(const ReadyList& list, size_t i);
  void wait_before(const ReadyList& list, size_t i);
  void note_end(const ReadyList::Item& item);
  template <class Work>
  void enqueue(const Action& action, Work work);
  /** Waits for the event as long as actions end; when none has for the watchdog's time, throws
   * Error(machine) that names the oldest unfinished action of each queue. */
  void wait_for(EventId event, const StepList& list) { wait_while(event, list, {}); }
  /** The same; false as soon as `goes_on`, where there is one, says no. turn_ is waited for as far
   * as the caller must. */
  bool wait_while(EventId event, const StepList& list, const std::function<bool()>& goes_on);
  /** Names the oldest unfinished action of each queue, in the order of the lists. */
  std::string unfinished(const StepList& list);
  /** The oldest unfinished action of the list needs other ranks. */
  bool awaits_ranks(const StepList& list);
  static std::chrono::milliseconds watchdog_of_environment();
  ReadyList ready(StepList list);
  PassMemory memory_of(const Action& action) const;
  ReadyList& training(int n_micro, UpdateOrder order, bool each_decides);
  void begin_pass(const ReadyList::Item& item);
  void end_pass(const ReadyList::Item& item);
  void run(const Action& action, Updates& updates);
  void move(const Action& action);
  void poison_dead(const Action& action);
  void exchange(const Action& action);
  void accumulate(const Action& action);
  void combine(const Action& action);
  void square_sum(const Action& action);
  void decide(const Action& action, Updates& updates);
  /** Square sums by block, and the loss, which the decision reads. */
  double take_sums(const Action& action);
  /** The same from what each rank's decision reads. */
  double take_sums_of_ranks(const Action& action);
  double sum_of_losses(const std::vector<std::vector<double>>& all,
                       const std::vector<size_t>& first) const;
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
    auto& spans = updates_of_[action.block].spans;
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
  const BlockShape& block(int b) const { return shape_.blocks[b]; }
  /** The bytes as values of a type; null where there are none. */
  template <class Value>
  Value* at(const Bytes& bytes) const {
    return reinterpret_cast<Value*>(memory_.at(bytes.region) + bytes.offset);
  }
  /** By action: the n-th of a queue has the n-th event of that queue, in every list. */
  std::vector<EventId> events_of(const StepList& list);
  void await_updates();
  bool has_frozen(int block) const;
  void measure_run_ahead(std::chrono::duration<double> step);
  /** Events of the bytes that a checkpoint must have before the action is submitted. */
  std::vector<EventId> saved_before(const Action& action) const;
  void drop(const StepList& list);
  /** Waits for the host's work of a step that was dropped; false: the run is to be dropped, too. */
  bool await_dropped(StepRun& run);
  void start(const ReadyList& list, bool trains);
  void finish_evaluation(const ReadyList& list);
  /** An evaluation ended before its end: nobody knows what the slots hold. */
  void forget_own_slots() { own_slots_version_ = -1; }
  /** Waits until the GPU's queues are empty. */
  void await_gpu(const StepList& list);

  const StepShape& shape_;
  Device& device_;
  WorkerPool& pool_;
  CpuMath host_math_;
  RunMemory& memory_;
  const Layout& layout_;
  bool overlap_;
  std::chrono::milliseconds watchdog_;
  /** By number of micro-batches, update order and whether each block decides. */
  std::map<std::tuple<int, UpdateOrder, bool>, ReadyList> lists_;
  /** By whether they fetch into own slots, and micro-batches. */
  std::map<std::pair<bool, int>, ReadyList> evaluation_lists_;
  int n_evaluated_ = 0;             ///< micro-batches of the last evaluation
  int64_t own_slots_version_ = -1;  ///< the version of the weights there
  struct BlockUpdate {
    std::vector<SpanUpdate> spans;   ///< the whole block, or its pieces
    std::vector<ElementRange> gaps;  ///< between trained tensors
  };
  Indexed<BlockUpdate> updates_of_;  ///< by block
  StateStore* store_;
  RankLink* link_;
  int n_micro_ = 0;  ///< of all ranks, in the step that was begun last
  std::optional<StateWindow> window_;
  EventId committed_;
  EventId pinned_;                         ///< the last checkpoint has kept its generation
  Indexed<EventId> sent_;                  ///< by block: its states to the drive
  PerQueue<std::vector<EventId>> events_;  ///< of actions
  Indexed<EventId> updated_;               ///< by block
  Indexed<EventId> saved_;                 ///< by block
  std::vector<int> save_order_;            ///< of blocks
  Indexed<bool> update_waits_for_save_;    ///< by block: its last update
  EventId save_ended_;
  bool is_saving_ = false;  ///< as far as seen
  std::atomic<int64_t> n_saved_bytes_ = 0;
  std::function<void(BlockStates&)> save_write_;
  std::function<void()> save_end_;
  Indexed<double> square_sums_;  ///< by block, of the decision
  Hooks hooks_;
  StepTracer* tracer_ = nullptr;
  bool is_traced_ = false;  ///< the run in progress
  EventId turn_;            ///< the queue has come to the pass that the caller has entered
  bool has_run_ = false;
  static constexpr size_t kRunAhead_max = 1'000'000;
  std::vector<size_t> compute_actions_;  ///< actions of the step in progress, as submitted
  size_t run_ahead_ = kRunAhead_max;     ///< actions; two seconds of them once a step was timed
  /** The host may still be at work for this step, which was dropped. */
  const StepList* dropped_ = nullptr;
  PerQueue<EventId> idle_{};
  UpdateRule rule_;
  /** The updates of the step that is submitted and of the two before: the updates of the last one
   * may be under way, and the commit of the one before that, which the last one's states wait for.
   */
  std::array<Updates, 3> updates_;
  size_t current_ = 0;
  StepOutcome outcome_;
};

}  // namespace ferry
