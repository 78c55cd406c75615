// A checkpoint that pins a generation on a drive keeps exactly the step after which it was begun,
// whatever the order of the queues, and no step waits for it.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "offload/store/generation_reader.h"
#include "tests/offload/executor/executor_probe.h"
#include "tests/offload/executor/toy_run.h"

namespace ferry::test {
namespace {

/** Bytes of a block in a generation, in the order of read_block(). */
std::vector<std::byte> read_pinned(const StepShape& shape, GenerationReader& reader, int b) {
  std::vector<std::byte> all;
  for (const TensorExtent& t : shape.blocks[b].tensors)
    for (Segment s : saved_segments(shape.optim)) {
      if (!is_in_segment(shape, s, t)) continue;
      std::vector<ByteRange> ranges = {{t.offset * 4, t.n_elements * 4}};  // fp32
      if (s != Segment::master) ranges = {element_bytes(shape, b, s, t.offset, t.n_elements)};
      if (s != Segment::master && shape.optim == simd::Optim::adamw_8bit)
        ranges.push_back(exponent_bytes(shape, b, t));
      for (const ByteRange& range : ranges) {
        all.resize(all.size() + static_cast<size_t>(range.n_bytes));
        reader.read(b, s, range.offset, std::span(all).last(static_cast<size_t>(range.n_bytes)));
      }
    }
  return all;
}

class PinUnderSteps : public testing::TestWithParam<ToyKind> {
 protected:
  ToyOptions options(Placing placing, bool clips) const {
    ShapeOptions shape = {.compute = GetParam().compute,
                          .placing = placing,
                          .optim = GetParam().optim,
                          .split_master = GetParam().split_master};
    if (!may_place(shape)) shape.order = AccumulationOrder::vertical;
    return {.shape = make_shape(shape), .clips = clips};
  }
  /** All states after so many steps, from a run that ends there. */
  Saved states_after(size_t n_steps, bool clips) const {
    ToyOptions o = options(Placing::host, clips);
    ToyRun run(o);
    for (size_t s = 0; s < n_steps; ++s)
      run.step(o.n_micro[s]);
    Saved saved;
    save(run, o.shape, saved);
    run.executor().await_saving();
    return saved;
  }
};

/** Pins under the next steps, and reads of memory what is not pinned. */
void pin(ToyRun& run, const StepShape& shape, Saved& saved) {
  run.executor().save(
      [&shape, &saved](BlockStates& block) {
        if (shape.n_state_pieces(block.block()) == 0)
          read_block(shape, block, saved.bytes[block.block()]);
      },
      [&saved] { saved.has_ended = true; }, [&run] { run.store()->pin("it"); });
}

void expect_pinned(ToyRun& run, const StepShape& shape, Saved memory, const Saved& expected) {
  // Whoever reads a generation need not know where gradients waited.
  StepShape reads = shape;
  for (BlockShape& block : reads.blocks)
    if (block.place.grads == Place::nvme) block.place.grads = reads.drive_memory();
  StateStore states(reads, *run.store());
  GenerationReader reader(reads, states, run.store()->pinned("it"));
  for (int b = 0; b < shape.n_blocks(); ++b)
    if (shape.n_state_pieces(b) > 0) memory.bytes[b] = read_pinned(shape, reader, b);
  EXPECT_TRUE(memory.bytes == expected.bytes);
}

TEST_P(PinUnderSteps, KeepsWhatTheStepLeft) {
  const bool is_long = std::getenv("FERRY_LONG");
  const int n_seeds = is_long ? 100 : 2;
  for (bool clips : {true, false})
    for (size_t after :
         is_long ? std::vector<size_t>{1, 3} : std::vector<size_t>{clips ? 1u : 3u}) {
      const Saved expected = states_after(after, clips);
      const ToyResult whole = run_toy(options(Placing::host, clips));
      for (Placing placing :
           {Placing::drive, Placing::mixed, Placing::drive_of_cpu, Placing::everything_on_drive})
        for (int seed = -2; seed < n_seeds; ++seed) {  // -2: serial, -1: threads
          SCOPED_TRACE("seed " + std::to_string(seed));
          ToyOptions o = options(placing, clips);
          o.device.mode = seed == -2   ? SimulatedMode::serial
                          : seed == -1 ? SimulatedMode::threads
                                       : SimulatedMode::adversarial;
          o.device.seed = static_cast<uint64_t>(std::max(0, seed));
          o.overlap = seed % 2 == 0;
          ToyRun run(o);
          Saved saved;
          for (size_t s = 0; s < o.n_micro.size(); ++s) {
            if (s == after) pin(run, o.shape, saved);
            run.step(o.n_micro[s]);
          }
          run.executor().await_saving();
          EXPECT_TRUE(saved.has_ended);
          EXPECT_EQ(run.result(), whole);
          expect_pinned(run, o.shape, saved, expected);
        }
    }
}

TEST_P(PinUnderSteps, NoStepWaitsForTheDiskOfItsFiles) {
  ToyOptions o = options(Placing::drive, true);
  o.device.mode = SimulatedMode::threads;
  const Saved expected = states_after(1, true);
  ToyRun run(o);
  run.step(o.n_micro[0]);
  std::atomic<bool> moves = false;
  run.executor().save([&](BlockStates&) { moves.wait(false); }, [] {},
                      [&] { run.store()->pin("it"); });
  for (size_t s = 1; s < o.n_micro.size(); ++s)
    run.step(o.n_micro[s]);
  EXPECT_TRUE(run.executor().is_saving());
  moves = true;
  moves.notify_all();
  run.executor().await_saving();
  EXPECT_EQ(run.result(), run_toy(options(Placing::host, true)));
  expect_pinned(run, o.shape, {}, expected);
}

/** Who goes on from a generation, or anew, finds no gradients of steps before. */
TEST_P(PinUnderSteps, NoGenerationHasGradients) {
  const ToyOptions o = options(Placing::everything_on_drive, true);
  ToyRun run(o);
  run.step(3);
  run.executor().settle();
  ExtentStore& store = *run.store();
  std::vector<SegmentId> grads, lasting;
  for (SegmentId id = 0; id < store.layout().n_segments(); ++id)
    (store.layout().segment(id).is_volatile ? grads : lasting).push_back(id);
  const auto n_written = [&](const std::vector<SegmentId>& segments) {
    return std::ranges::count_if(segments, [&](SegmentId id) { return store.is_written(id); });
  };
  ASSERT_GT(grads.size(), 5u);
  EXPECT_EQ(n_written(grads), std::ssize(grads));
  EXPECT_TRUE(StateStore::is_store_of(o.shape, store.layout()));
  EXPECT_FALSE(StateStore::is_store_of(options(Placing::all_on_drive, true).shape, store.layout()));
  EXPECT_TRUE(
      StateStore::has_states_of(options(Placing::all_on_drive, true).shape, store.layout()));
  store.start_anew();
  EXPECT_EQ(n_written(grads), 0);
  EXPECT_EQ(n_written(lasting), 0);
  store.start_from(store.committed());
  EXPECT_EQ(n_written(grads), 0);
  EXPECT_EQ(n_written(lasting), std::ssize(lasting));
}

/** A commit that lasts as long as a step: the next ones are submitted meanwhile, or dropped. */
TEST_P(PinUnderSteps, ASlowCommitHasTheTextOfItsStep) {
  for (const bool drops : {false, true}) {
    ToyOptions o = options(Placing::drive, true);
    o.device.mode = SimulatedMode::threads;
    o.n_micro.assign(12, 1);
    ToyRun run(o);
    std::vector<std::string> texts;
    ExecutorProbe::set_around(run.executor(),
                              [&](const Action& action, const std::function<void()>& work) {
                                const bool is_commit = action.verb == Verb::commit;
                                if (is_commit)
                                  std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                work();
                                if (is_commit) texts.push_back(run.store()->committed().metadata);
                              });
    std::vector<std::string> expected;
    for (int step = 0; step < 12; ++step) {
      for (int i = 0; drops && i < 4; ++i)
        ASSERT_TRUE(run.drop_step(1, 0));
      run.step(1);
      expected.push_back(std::to_string(step));
    }
    run.executor().settle();
    EXPECT_EQ(texts, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PinUnderSteps, testing::ValuesIn(kToyKinds), [](const auto& param) {
  return text_of(param.param);
});

}  // namespace
}  // namespace ferry::test
