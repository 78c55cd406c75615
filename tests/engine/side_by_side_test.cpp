// Two sessions in one process, on one device: each trains as if it were alone.

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "tests/engine/toy_runs.h"

namespace ferry::test {
namespace {

constexpr int kSteps_of_both = 5;

class SideBySide : public ::testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceKind::cpu) return;
    if (CudaProbe probe = probe_cuda(); !probe.usable)
      GTEST_SKIP() << "no usable GPU: " << probe.why_not;
  }
  static AttentionBackend attention() {
    return GetParam() == DeviceKind::cpu ? AttentionBackend::cpu_math : AttentionBackend::flash;
  }
  /** With dropout, whose random numbers LibTorch has for the whole process. */
  static ToyModel student() {
    return small_bert(DType::bf16, LossKind::cross_entropy, attention());
  }
  static ToyModel teacher() {
    return small_decoder(DecoderFamily::llama, DType::bf16, attention());
  }
  static ToyPlacement placement(Place place) {
    ToyPlacement p;
    p.place = place;
    p.device = GetParam();
    p.mode = SimulatedMode::threads;
    return p;
  }
  static ToyResult alone(const ToyModel& model) {
    return run_toy(model, placement(Place::device), kSteps_of_both);
  }
};

// The second begins and ends while the first has updates under way.
TEST_P(SideBySide, AWholeRunBetweenTwoSteps) {
  const ToyModel first = student(), second = teacher();
  const ToyResult first_alone = alone(first), second_alone = alone(second);
  ToyPlacement placed = placement(Place::host);
  int n_runs = 0;
  placed.before_step = [&](int step) {
    if (step % 2 == 0) return;
    ++n_runs;
    EXPECT_EQ(first_difference(second, second_alone,
                               run_toy(second, placement(Place::host), kSteps_of_both)),
              "");
  };
  EXPECT_EQ(first_difference(first, first_alone, run_toy(first, placed, kSteps_of_both)), "");
  EXPECT_GE(n_runs, 2);
}

// Each in a thread of its own, step beside step.
TEST_P(SideBySide, StepBesideStep) {
  const ToyModel models[] = {student(), teacher(), student()};
  ToyResult results[std::size(models)];
  std::barrier all_begin(std::ssize(models));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::size(models); ++i)
      threads.emplace_back([&, i] {
        ToyPlacement placed = placement(i == 1 ? Place::device : Place::host);
        placed.before_step = [&](int) { all_begin.arrive_and_wait(); };
        results[i] = run_toy(models[i], placed, kSteps_of_both);
      });
  }
  for (size_t i = 0; i < std::size(models); ++i)
    EXPECT_EQ(first_difference(models[i], alone(models[i]), results[i]), "") << models[i].name;
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         SideBySide,
                         ::testing::Values(DeviceKind::cpu, DeviceKind::cuda),
                         [](const auto& param) {
                           return param.param == DeviceKind::cpu ? "cpu" : "cuda";
                         });

}  // namespace
}  // namespace ferry::test
