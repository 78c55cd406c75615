// Which updates wait for the next forward.

#include "src/plan/search/late_updates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/search/even_plans.h"

namespace ferry::test {
namespace {

TEST(Simulation, LeavesUpdatesForTheNextForwardWhereTheyAreSlow) {
  const ModelTable model = bert(1024, 24);
  const auto n_late = [&](double adamw) {
    const Plan plan = all_on_host(model, even_machine({.update_params_per_s = adamw}), false);
    return std::ranges::count_if(plan.shape.blocks, &BlockShape::updates_late);
  };
  EXPECT_GT(n_late(4.5e9), 2);
  EXPECT_EQ(n_late(50e9), 0);
}

// A machine's memory is not always as fast as when its profile was measured.
TEST(Simulation, LateUpdatesAreAsManyAsDoForSlowerOnesToo) {
  const ModelTable model = bert(1024, 24);
  // Alone and beside copies, which slow it down more under the backward than under the forward.
  for (double shared : {1.0, 0.7})
    for (double adamw = 3e9; adamw < 10e9; adamw *= 1.1) {
      const MachineProfile slower =
          even_machine({.update_params_per_s = 0.8 * adamw, .shared = shared});
      const Plan plan =
          all_on_host(model, even_machine({.update_params_per_s = adamw, .shared = shared}), false);
      const double best_s = all_on_host(model, slower, false).predicted->step_s;
      EXPECT_LE(simulate_plan(model, on_gpu(slower, 200 * kGiB, false), plan).step_s, best_s * 1.05)
          << adamw << ", shared " << shared;
    }
}

}  // namespace
}  // namespace ferry::test
