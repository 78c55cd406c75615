#pragma once
// One rank leads: it has the run's data, files and control, and tells the others what to do. They
// know the model and where its bytes lie, and hold their parts. Messages between ranks of the same
// program on like machines.

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "offload/executor/block_states.h"
#include "offload/executor/rank_link.h"
#include "offload/step/layout.h"
#include "src/comm/comm.h"
#include "src/engine/host_batch.h"

namespace ferry {

class Session;
struct Evaluated;
struct SessionState;

/** The groups in which the ranks of a session talk, each from a thread of its own. */
struct RankGroups {
  std::unique_ptr<Comm> commands;   ///< of the thread that steps
  std::unique_ptr<Comm> exchanges;  ///< of the queue `collective`, where the CPU computes
  std::unique_ptr<Comm> decisions;  ///< of the queue `decision`
  std::unique_ptr<Comm> states;     ///< of the queue `save`
  /** The ranks that share micro-batches with this one, of the compute queue; null: none do. */
  std::unique_ptr<Comm> sharing;
};
/** All ranks call it. `n_sharing`: ranks that share a micro-batch. */
RankGroups make_rank_groups(Comm& all, int n_sharing = 1);

/** Carries bytes of host memory by these groups, which outlive the link. */
std::unique_ptr<RankLink> make_comm_link(Comm& exchanges, Comm& decisions);

/** The leader's side. */
class RankLeader {
 public:
  struct Command;  ///< messages.h

  /** Both outlive the leader. */
  RankLeader(const StepShape& shape, RankGroups& groups) : shape_(shape), groups_(groups) {}
  /** The others end, too. */
  ~RankLeader();

  /** Gives each rank its micro-batches of a step, or of a rehearsal of one. They are parts
   * (MicroBatchParts) where ranks share micro-batches, as in an evaluation. */
  void step(std::span<const HostBatch> micro_batches);
  void rehearse(std::span<const HostBatch> micro_batches, bool settles);
  /** The replicas evaluate these in turn, the leader's one the first; each has as many. */
  void evaluate(std::span<const HostBatch> batches, bool wants_logits);
  /** What the others found, in the place of their batches. */
  void take_evaluated(std::span<Evaluated> evaluated);
  /** Bytes of another rank's segment, after the step before has ended there. */
  void write(const RankPart& part, int block, Segment segment, const std::byte* from);
  void read(const RankPart& part, int block, Segment segment, std::byte* to);
  void restore(const SessionState& state);
  void change_optimizer(std::string_view key, double value);
  /** False where a rank cannot; then none has. */
  bool leave_gpu();
  void return_to_gpu();
  /** The others' checkpoint begins: they answer read_state(). */
  void save();
  /** On the save queue: bytes of a segment as a checkpoint has them. */
  void read_state(const RankPart& part, int block, Segment segment, std::byte* to);
  /** On the save queue: the block is written. */
  void end_block();

 private:
  void tell(const Command& command);
  void tell(int rank, const Command& command);
  void send_batch(const HostBatch& batch, int rank);
  void send_batches(std::span<const HostBatch> micro_batches, const Rounds& rounds);
  int world() const { return shape_.ranks.world; }
  size_t replica_of(int rank) const { return static_cast<size_t>(shape_.ranks.replica_of(rank)); }
  Rounds rounds_of(std::span<const HostBatch> micro_batches) const {
    return {shape_.ranks, static_cast<int>(micro_batches.size())};
  }

  const StepShape& shape_;
  RankGroups& groups_;
};

/** The side of the others: does what the leader tells, until it ends. Throws where it is gone. */
void follow(Session& session, RankGroups& groups);

/** A block's states of all ranks, for the leader. */
class GatheredStates final : public StateSource {
 public:
  GatheredStates(const StepShape& shape, StateSource& own, RankLeader& leader)
      : shape_(shape), own_(own), leader_(leader) {}
  int block() const override { return own_.block(); }
  void read(std::span<const StatePiece> pieces,
            const std::function<void(size_t piece)>& look) override;

 private:
  const StepShape& shape_;
  StateSource& own_;
  RankLeader& leader_;
};

}  // namespace ferry
