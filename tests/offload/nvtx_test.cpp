// A profiler that listens sees a step's actions by the names of the trace, each while it runs.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/offload/toy_run.h"

namespace ferry::test {
namespace {

TEST(Nvtx, AProfilerSeesTheActionsOfEveryStep) {
  const char* file = std::getenv("FERRY_NVTX_LOG");
  ASSERT_TRUE(file) << "run by meson test";
  ToyOptions options{.shape = make_shape({.placing = Placing::mixed}), .device = {}, .clips = true};
  ToyRun run(options);
  StepTracer& tracer = run.trace();
  run.step(1);
  run.step(2);
  std::vector<std::string> expected = {"ferry"};
  for (const TimedAction& action : tracer.take()) {
    expected.push_back(action.name);
    expected.emplace_back("end");
  }
  std::vector<std::string> seen;
  std::ifstream log(file);
  for (std::string line; std::getline(log, line);)
    seen.push_back(line);
  EXPECT_EQ(seen, expected);
  EXPECT_GT(seen.size(), 20u);
}

}  // namespace
}  // namespace ferry::test
