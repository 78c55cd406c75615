// A step whose passes the caller does itself leaves the same bits as one that the queues do; where
// it is broken off it leaves nothing.

#include <gmock/gmock.h>

#include <stdexcept>

#include "src/base/error.h"
#include "tests/files/no_memory.h"
#include "tests/offload/executor/toy_run.h"

namespace ferry::test {
namespace {

constexpr SimulatedMode kEveryMode[] = {SimulatedMode::serial, SimulatedMode::threads,
                                        SimulatedMode::adversarial};

ToyOptions toy_options(Placing placing, bool clips) {
  ToyOptions options{
      .shape = make_shape(
          {.compute = DType::bf16,
           .placing = placing,
           .activations = placing == Placing::mixed ? Activations::recompute : Activations::keep,
           .layer_inputs_on_host = placing == Placing::mixed})};
  options.evaluate_after = 1;
  options.clips = clips;
  return options;
}

TEST(EnteredPasses, LeaveTheBitsOfThoseInTheQueue) {
  for (Placing placing :
       {Placing::gpu, Placing::host, Placing::mixed, Placing::states_on_gpu, Placing::all_on_drive})
    for (bool clips : {true, false}) {
      ToyOptions options = toy_options(placing, clips);
      const ToyResult queued = run_toy(options);
      options.enters = true;
      for (SimulatedMode mode : kEveryMode)
        for (uint64_t seed = 0; seed < (mode == SimulatedMode::adversarial ? 4u : 1u); ++seed) {
          options.device.mode = mode;
          options.device.seed = seed;
          EXPECT_EQ(run_toy(options), queued) << "placing " << static_cast<int>(placing);
        }
    }
}

TEST(EnteredPasses, ThrowInAnyOfThemAndTheStepComesAgain) {
  ToyOptions options = toy_options(Placing::mixed, /*clips=*/true);
  const ToyResult whole = run_toy(options);
  options.enters = true;
  int n_thrown = 0;
  for (int at = 0; n_thrown == at; ++at) {
    options.device.mode = kEveryMode[at % 3];
    ToyRun run(options);
    for (size_t s = 0; s < options.n_micro.size(); ++s) {
      int n_passes = 0;
      run.work().before = [&](const Action&) {
        if (s == 2 && n_passes++ == at) throw std::runtime_error("no such layer");
      };
      try {
        run.step(options.n_micro[s]);
      } catch (const std::runtime_error&) {
        ++n_thrown;
        run.work().before = {};
        run.step(options.n_micro[s]);
      }
      if (static_cast<int>(s) == options.evaluate_after) run.evaluate();
    }
    ASSERT_EQ(run.result(), whole) << "pass " << at;
  }
  EXPECT_GT(n_thrown, 20);
}

/** The text of the error that `call` throws. */
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    return error.what();
  }
  return "";
}

TEST(EnteredPasses, AreRefusedOutOfTheirOrder) {
  const ToyOptions options = toy_options(Placing::host, /*clips=*/true);
  ToyRun run(options);
  {
    StepRun step = run.begin(1);
    EXPECT_THAT(error_of([&] { step.enter(Verb::backward, 1, 0); }),
                testing::AllOf(testing::HasSubstr("backward(layer.0"),
                               testing::HasSubstr("forward(embeddings")));
    EXPECT_THAT(error_of([&] { step.finish(); }), testing::HasSubstr("was not run"));
    EXPECT_TRUE(step.enter(Verb::forward, 0, 0));
  }  // dropped
  ToyOptions taken = options;
  taken.n_micro = {3};
  run.step(3);
  EXPECT_EQ(run.result(), run_toy(taken));
}

// Some blocks have taken the step, and the others have not: nobody may go on from there.
TEST(EnteredPasses, BrokenOffBehindAnUpdateFailTheRun) {
  ToyOptions options = toy_options(Placing::host, /*clips=*/false);
  ToyRun run(options);
  run.step(1);
  {
    StepRun step = run.begin(1);
    while (const Action* pass = step.next()) {
      if (pass->verb == Verb::backward && pass->block == 0) break;
      step.submit(run.work());
    }
  }
  EXPECT_THAT(error_of([&] { run.step(1); }), testing::HasSubstr("left after its first update"));
}

/** Does nothing: what a step allocates beside it is the executor's. */
class NoWork final : public ComputeWork {
  void forward(const Action&, const PassMemory&) override {}
  void backward(const Action&, const PassMemory&) override {}
};

TEST(Executor, AllocatesNothingFromPassToPass) {
  for (Placing placing : {Placing::gpu, Placing::host, Placing::states_on_gpu}) {
    ToyRun run(toy_options(placing, /*clips=*/true));
    run.step(3);
    run.step(3);
    NoWork work;
    StepRun step = run.begin(3);
    int n_passes = 0;
    int64_t n_allocations = 0;
    while (true) {
      const int64_t before = n_allocations_of_thread();
      if (!step.next()) break;
      step.submit(work);
      n_allocations += n_allocations_of_thread() - before;
      ++n_passes;
    }
    EXPECT_GT(n_passes, 20);
    EXPECT_EQ(n_allocations, 0) << "placing " << static_cast<int>(placing);
    step.finish();
  }
}

}  // namespace
}  // namespace ferry::test
