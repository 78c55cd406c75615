#pragma once
// Simulates a step on a machine that need not be here: the pager's own list of actions runs through
// queues whose rates are the cost model's. The planner compares candidates by it, `ferry plan`
// prints its time, and --simulate writes its trace.

#include <array>
#include <string>
#include <vector>

#include "offload/step/pager.h"
#include "offload/step/step_trace.h"
#include "src/plan/cost/rank_costs.h"

namespace ferry {

/** The seconds of a step that a rank's queues work. */
struct RankBusy {
  int rank = 0;
  PerQueue<double> busy_s{};
};

struct Simulation {
  double step_s = 0;           ///< from one decision to the next, once steps follow each other
  PerQueue<double> busy_s{};   ///< seconds of one step, by queue
  PerQueue<double> alone_s{};  ///< the same, had nothing run beside it
  double host_updates_s = 0;   ///< the part of these for AdamW on the host
  /** The ranks that were simulated, each for all of its kind; the first one's are `busy_s`. */
  std::vector<RankBusy> ranks;
  double least_drive_s = 0;  ///< the least that the drive takes for a step's reads and writes
  /** The queue that works for the largest share of the step: what binds. */
  QueueId binding() const;
  /** The time of the busiest queue of any rank. No step is shorter. */
  double busiest_s() const;
  std::vector<TimedAction> actions;  ///< actions of the last steps, seconds from their begin
};

/** Steps of a training list of the layout, each of whose micro-batches takes as long as `n_each`.
 * With `keeps_actions` the trace of two steps is kept. */
Simulation simulate_list(const CostModel& cost,
                         const StepShape& shape,
                         const Layout& layout,
                         const StepList& list,
                         bool serial,
                         bool keeps_actions = false,
                         double n_each = 1);
/** The same with `n_micro` micro-batches a step. The stages of a replica run beside each other, and
 * replicas on several kinds of GPUs or in unlike shares, too: the step is as long as the slowest of
 * them takes. */
Simulation simulate_steps(const RankCosts& costs,
                          const StepShape& shape,
                          int n_micro,
                          UpdateOrder order,
                          bool serial,
                          bool keeps_actions = false,
                          double n_each = 1);

}  // namespace ferry
