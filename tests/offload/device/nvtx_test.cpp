// A profiler that listens sees a step's actions by the names of the trace, each while it runs.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/offload/executor/toy_run.h"

namespace ferry::test {
namespace {

TEST(Nvtx, AProfilerSeesTheActionsOfEveryStep) {
  const char* file = std::getenv("FERRY_NVTX_LOG");
  ASSERT_TRUE(file) << "run by meson test";
  ToyOptions options{.shape = make_shape({.placing = Placing::mixed}), .device = {}, .clips = true};
  ToyRun run(options);
  run.step(2);  // before anything is traced: a profiler sees this one too
  StepTracer& tracer = run.trace();
  run.step(2);
  std::vector<std::string> of_a_step;
  for (const TimedAction& action : tracer.take()) {
    of_a_step.push_back(action.name);
    of_a_step.emplace_back("end");
  }
  std::vector<std::string> expected = {"ferry"};
  for (int step = 0; step < 2; ++step)
    expected.insert(expected.end(), of_a_step.begin(), of_a_step.end());
  std::vector<std::string> seen;
  std::ifstream log(file);
  for (std::string line; std::getline(log, line);)
    seen.push_back(line);
  EXPECT_EQ(seen, expected);
  EXPECT_GT(seen.size(), 20u);
}

}  // namespace
}  // namespace ferry::test
