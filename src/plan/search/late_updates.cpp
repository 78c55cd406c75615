#include "src/plan/search/late_updates.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/plan/search/search.h"

namespace ferry {
namespace {

constexpr double kSlower = 0.8;
/** Passes of a step with which shares are compared: what they change is at its ends. */
constexpr int64_t kPasses = 200;

/** Blocks whose updates may be late. */
std::vector<size_t> updated_on_host(const StepShape& shape) {
  std::vector<size_t> blocks;
  for (int b = 0; b < shape.n_blocks(); ++b)
    if (shape.updates_in(b) == Place::host && shape.is_trained(b) && !shape.tied(b))
      blocks.push_back(static_cast<size_t>(b));
  return blocks;
}

/** Makes a share of these blocks late, evenly. */
void set_late(StepShape& shape, const std::vector<size_t>& blocks, double share) {
  double n_late = 0;
  for (size_t b : blocks) {
    shape.blocks[b].updates_late = std::floor(n_late + share) > std::floor(n_late);
    n_late += share;
  }
}

MachineProfile with_slower_updates(MachineProfile machine) {
  for (UpdateRate& rate : machine.host.updates) {
    rate.alone *= kSlower;
    rate.beside_copies *= kSlower;
  }
  return machine;
}

/** The queue that is busy longest, or the drive. The host's updates are slowed down by copies
 * beside them, which may be others once they are late, and so are the drive's reads and writes by
 * each other. */
double least_seconds(const Simulation& simulation) {
  PerQueue<double> busy_s = simulation.busy_s;
  for (QueueId queue : {QueueId::host, QueueId::nvme_read, QueueId::nvme_write})
    busy_s[queue] = simulation.alone_s[queue];
  return std::max(*std::ranges::max_element(busy_s), simulation.least_drive_s);
}

/** Updates on the host, and the time that the drive takes for their states. */
double updates_seconds(const Simulation& simulation) {
  const auto busy_s = [&](QueueId queue) { return simulation.busy_s[queue]; };
  return simulation.host_updates_s + busy_s(QueueId::nvme_read) + busy_s(QueueId::nvme_write);
}

/** True where a step may become shorter by as much as a prediction can tell, at one speed or the
 * other. */
bool can_gain(const Plan& plan) {
  const double step_s = plan.predicted->step_s;
  const double gain_s = std::max(step_s - least_seconds_with_late_updates(plan),
                                 plan.predicted->host_updates_s * (1 / kSlower - 1));
  return gain_s > kPrediction_share * step_s;
}

}  // namespace

double least_seconds_with_late_updates(const Plan& plan) {
  return std::max(least_seconds(*plan.predicted),
                  plan.predicted->step_s - updates_seconds(*plan.predicted));
}

void choose_late_updates(const ModelTable& model, const PlanRequest& request, Plan& plan) {
  const std::vector<size_t> blocks = updated_on_host(plan.shape);
  if (blocks.empty() || !can_gain(plan)) return;
  const MachineProfile slower = with_slower_updates(*request.machine);
  const CostModel cost(*request.machine, request.has_gpu, model, plan.shape, plan.typical),
      cost_slower(slower, request.has_gpu, model, plan.shape, plan.typical);
  // Late updates change the list of a step and no layout.
  StepShape tried = plan.shape;
  const Layout layout = make_layout(tried);
  const auto micro_batches = simulated_micro_batches(plan, kPasses);
  StepList list;
  const auto make_list = [&] {
    list = make_training_list(tried, layout, micro_batches.n, update_order_of(request));
  };
  const auto simulate = [&](const CostModel& with) {
    return simulate_list(with, tried, layout, list, /*serial=*/!request.has_gpu,
                         /*keeps_actions=*/false, micro_batches.n_each);
  };
  make_list();
  const Simulation in_time = simulate(cost), in_time_slower = simulate(cost_slower);
  constexpr double kNearlyAll = 1.01, kWorthIt = 0.995;
  const double enough_s = kNearlyAll * (least_seconds(in_time) + least_seconds(in_time_slower));
  double both_s = in_time.step_s + in_time_slower.step_s, best_share = 0;
  for (double share : {0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0}) {
    if (both_s < enough_s) break;
    set_late(tried, blocks, share);
    make_list();
    const double step_s = simulate(cost).step_s;
    if (2 * step_s >= both_s * kWorthIt) continue;  // slower updates make no step faster
    const double tried_s = step_s + simulate(cost_slower).step_s;
    if (tried_s >= both_s * kWorthIt) continue;
    both_s = tried_s;
    best_share = share;
  }
  if (best_share == 0) return;
  set_late(plan.shape, blocks, best_share);
  plan.predicted = simulate_plan(model, request, plan);
}

}  // namespace ferry
