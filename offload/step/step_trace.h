#pragma once
// The times when each action of some steps ran: a StepTracer measures them, or the planner's
// simulator (src/plan/cost/simulate.h) computes them. They are written as a Chrome trace, for
// chrome://tracing and Perfetto.

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "offload/step/action.h"

namespace ferry {

struct TimedAction {
  std::string name;  ///< "backward(layer.3, micro-batch 1)"
  QueueId queue{};
  Verb verb{};
  int block = -1;
  int step = 0;
  double begin_s = 0, end_s = 0;
};

/** Figures on how a step's resources work at once. */
struct Overlap {
  PerQueue<double> busy_s{};  ///< by queue
  double window_s = 0;        ///< from the first begin to the last end
  double beside_s = 0;        ///< copies or updates run
  double hidden_s = 0;        ///< the part of these while the compute queue works too
  /** 0 to 1; 1 where there is nothing to hide. */
  double hidden_share() const { return beside_s > 0 ? hidden_s / beside_s : 1.0; }
};
Overlap overlap_of(std::span<const TimedAction> actions);

/** The trace as JSON (Trace Event Format): one process, one thread a queue, complete events in
 * microseconds from the first begin. A trace that is there is replaced. Throws Error(usage) where
 * another file is there, or a link; Error(machine) where it cannot be written. */
void write_chrome_trace(const std::filesystem::path& file, std::span<const TimedAction> actions);

}  // namespace ferry
