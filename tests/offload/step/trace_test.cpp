// A trace of a run's steps: every action once, in an order that the list allows, and what overlaps
// is counted.

#include "offload/step/step_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/error.h"
#include "tests/offload/executor/executor_probe.h"
#include "tests/offload/executor/toy_run.h"

namespace ferry::test {
namespace {

class Traces : public testing::TestWithParam<SimulatedMode> {};

TEST_P(Traces, HaveEveryActionOnceAndInOrder) {
  for (bool clips : {true, false}) {
    ToyOptions options{.shape = make_shape({.placing = Placing::mixed}),
                       .device = {.mode = GetParam(), .seed = 3, .poison = true},
                       .clips = clips};
    ToyOptions untraced = options;
    const ToyResult expected = run_toy(untraced);
    ToyRun run(options);
    StepTracer& tracer = run.trace();
    for (int n_micro : options.n_micro)
      run.step(n_micro);
    EXPECT_EQ(run.result(), expected) << "tracing changes no bit";
    const std::vector<TimedAction> actions = tracer.take();
    const UpdateOrder order = clips ? UpdateOrder::after_decision : UpdateOrder::as_grads_arrive;
    size_t at = 0;
    for (int step = 1; step <= static_cast<int>(options.n_micro.size()); ++step) {
      const StepList& list = ExecutorProbe::training_list(
          run.executor(), options.n_micro[static_cast<size_t>(step - 1)], order);
      ASSERT_LE(at + list.size(), actions.size());
      for (size_t i = 0; i < list.size(); ++i) {
        const TimedAction& timed = actions[at + i];
        EXPECT_EQ(timed.name, describe(list[i], options.shape));
        EXPECT_EQ(timed.step, step);
        EXPECT_LE(timed.begin_s, timed.end_s) << timed.name;
        for (int before : list[i].after)
          EXPECT_LE(actions[at + static_cast<size_t>(before)].end_s, timed.end_s) << timed.name;
      }
      at += list.size();
    }
    EXPECT_EQ(at, actions.size());
    EXPECT_TRUE(tracer.take().empty());
  }
}

std::string name_of_mode(const testing::TestParamInfo<SimulatedMode>& info) {
  constexpr const char* kNames[] = {"serial", "adversarial", "threads"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(,
                         Traces,
                         testing::Values(SimulatedMode::serial,
                                         SimulatedMode::threads,
                                         SimulatedMode::adversarial),
                         name_of_mode);

TimedAction action(QueueId queue, double begin_s, double end_s) {
  return {.name = "a", .queue = queue, .begin_s = begin_s, .end_s = end_s};
}

TEST(Overlap, CountsWhatLiesUnderComputing) {
  // compute 0-4 and 6-8; copies 3-5 and 4-7 (3-7 joined); an update 7-9.
  const std::vector<TimedAction> actions = {
      action(QueueId::compute, 0, 4), action(QueueId::compute, 6, 8),
      action(QueueId::h2d, 3, 5),     action(QueueId::d2h, 4, 7),
      action(QueueId::host, 7, 9),    action(QueueId::decision, 9, 10)};
  const Overlap overlap = overlap_of(actions);
  EXPECT_DOUBLE_EQ(overlap.window_s, 10);
  EXPECT_DOUBLE_EQ(overlap.busy_s[QueueId::compute], 6);
  EXPECT_DOUBLE_EQ(overlap.busy_s[QueueId::h2d], 2);
  EXPECT_DOUBLE_EQ(overlap.beside_s, 6);  // 3 to 9
  EXPECT_DOUBLE_EQ(overlap.hidden_s, 3);  // 3 to 4, 6 to 8
  EXPECT_DOUBLE_EQ(overlap.hidden_share(), 0.5);
  EXPECT_DOUBLE_EQ(overlap_of({}).hidden_share(), 1);
}

TEST(ChromeTrace, IsJsonWithOneEventAnActionAndOneThreadAQueue) {
  const auto file = std::filesystem::path(testing::TempDir()) / "trace.json";
  write_chrome_trace(file, std::vector<TimedAction>{action(QueueId::compute, 10, 10.5),
                                                    action(QueueId::h2d, 10.25, 11)});
  const auto json = nlohmann::json::parse(std::ifstream(file));
  std::set<int> threads;
  std::vector<nlohmann::json> events;
  for (const auto& event : json.at("traceEvents"))
    if (event.at("ph") == "M")
      threads.insert(event.at("tid").get<int>());
    else
      events.push_back(event);
  EXPECT_EQ(threads.size(), static_cast<size_t>(kQueues));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("ts"), 0.0);
  EXPECT_EQ(events[0].at("dur"), 500000.0);
  EXPECT_EQ(events[1].at("ts"), 250000.0);
  EXPECT_EQ(events[1].at("tid"), static_cast<int>(QueueId::h2d));
  EXPECT_ANY_THROW(write_chrome_trace("/proc/no/such/file.json", {}));
}

TEST(ChromeTrace, TakesTheNameOfNoOtherFile) {
  const auto directory = std::filesystem::path(testing::TempDir());
  const auto file = directory / "important.txt", link = directory / "link.json";
  std::ofstream(file) << "data\n";
  EXPECT_THROW(write_chrome_trace(file, {}), Error);
  std::filesystem::remove(link);
  std::filesystem::create_symlink(file, link);
  EXPECT_THROW(write_chrome_trace(link, {}), Error);
  std::string text;
  std::getline(std::ifstream(file), text);
  EXPECT_EQ(text, "data");
  // A trace, and a file that somebody made for one, are taken.
  std::ofstream(file, std::ios::trunc).flush();
  write_chrome_trace(file, {});
  write_chrome_trace(file, std::vector<TimedAction>{action(QueueId::compute, 0, 1)});
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(file)).at("traceEvents").back().at("ph"), "X");
}

}  // namespace
}  // namespace ferry::test
