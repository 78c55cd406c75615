// Actions touch the bytes that they say they touch, and no others: each action of a run finds
// everything else spoiled, and leaves it so.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/offload/executor/executor_probe.h"
#include "tests/offload/executor/toy_run.h"

namespace ferry::test {
namespace {

/** Hides from an action what it does not read, and looks afterwards at what it does not write. */
class Hidden {
 public:
  Hidden(const RunMemory& memory, const Action& action) : memory_(memory) {
    for (RegionId id = 0; id < static_cast<RegionId>(memory.layout().regions.size()); ++id)
      if (id != memory.layout().save_buffer && memory.at(id))  // a drive's bytes pass through slots
        regions_.push_back({id, bytes_of(id), {}});
    for (const Bytes& bytes : action.reads)
      use(bytes, kReads);
    for (const Bytes& bytes : action.writes)
      use(bytes, kWrites);
    for (Hide& region : regions_) {
      std::byte* at = memory_.at(region.id);
      if (region.uses.empty()) std::memset(at, 0xff, region.before.size());
      for (size_t i = 0; i < region.uses.size(); ++i)
        if ((region.uses[i] & kReads) == 0) at[i] = kSpoiled;
    }
  }
  /** Brings it back. Above 0: something was written though the action does not say so. */
  int64_t reveal() {
    int64_t n_wrong = 0;
    for (Hide& region : regions_) {
      std::byte* at = memory_.at(region.id);
      const size_t n = region.before.size();
      if (region.uses.empty()) {
        n_wrong += at[0] != kSpoiled || std::memcmp(at, at + 1, n - 1) != 0;
        std::memcpy(at, region.before.data(), n);
      }
      for (size_t i = 0; i < region.uses.size(); ++i) {
        std::byte& now = at[i];
        if (region.uses[i] & kWrites) continue;
        n_wrong += now != (region.uses[i] & kReads ? region.before[i] : kSpoiled);
        now = region.before[i];
      }
    }
    return n_wrong;
  }

 private:
  static constexpr uint8_t kReads = 1, kWrites = 2;
  static constexpr std::byte kSpoiled{0xff};
  struct Hide {
    RegionId id;
    std::vector<std::byte> before;
    std::vector<uint8_t> uses;  ///< by byte; empty: none is used
  };
  std::vector<std::byte> bytes_of(RegionId id) const {
    const std::byte* at = memory_.at(id);
    return {at, at + memory_.layout().region(id).n_bytes};
  }
  void use(const Bytes& bytes, uint8_t how) {
    if (!memory_.at(bytes.region)) return;  // on a drive
    Hide& region = *std::ranges::find(regions_, bytes.region, &Hide::id);
    region.uses.resize(region.before.size());
    for (int64_t i = bytes.offset; i < bytes.offset + bytes.n_bytes; ++i)
      region.uses.at(static_cast<size_t>(i)) |= how;
  }

  const RunMemory& memory_;
  std::vector<Hide> regions_;
};

/** A run of two steps and an evaluation between them whose actions see no more than they say. */
ToyResult run_hidden(const ToyOptions& options, int64_t& n_wrong) {
  ToyRun run(options);
  ExecutorProbe::set_around(run.executor(),
                            [&](const Action& action, const std::function<void()>& work) {
                              Hidden hidden(run.memory(), action);
                              work();
                              n_wrong += hidden.reveal();
                            });
  run.step(options.n_micro[0]);
  run.evaluate();
  run.step(options.n_micro[1]);
  return run.result();
}

ToyOptions options_of(const StepShape& shape, bool clips) {
  return {.shape = shape,
          .n_micro = {shape.n_micro_max, 1},
          .skipped_step = -1,
          .evaluate_after = 0,
          .clips = clips};
}

TEST(Declared, ActionsTouchWhatTheySayAndNothingElse) {
  std::mt19937_64 random(7);
  int n_shapes = 0;
  while (n_shapes < 24) {
    StepShape shape = random_shape(random);
    if (shape.n_blocks() > 6) continue;
    ++n_shapes;
    const ToyOptions options = options_of(shape, /*clips=*/random() % 2 == 0);
    int64_t n_wrong = 0;
    EXPECT_TRUE(run_hidden(options, n_wrong) == run_toy(options)) << "shape " << n_shapes;
    EXPECT_EQ(n_wrong, 0) << "shape " << n_shapes;
  }
}

TEST(Declared, WhatIsNotSaidShows) {
  const StepShape shape = make_shape({.n_layers = 1, .n_micro_max = 2});
  ToyOptions options = options_of(shape, true);
  const ToyResult expected = run_toy(options);
  for (const Role role : {Role::weights, Role::borrowed, Role::value, Role::grads, Role::saved,
                          Role::states, Role::loss, Role::square_sum}) {
    options.fault = [role](StepList& list) {
      for (Action& a : list)
        for (auto* all : {&a.reads, &a.writes})
          for (Bytes& bytes : *all)
            if (bytes.role == role && a.verb != Verb::accumulate && a.verb != Verb::combine)
              bytes.n_bytes /= 4;
    };
    int64_t n_wrong = 0;
    const bool same = run_hidden(options, n_wrong) == expected;
    EXPECT_TRUE(!same || n_wrong > 0) << static_cast<int>(role);
  }
}

}  // namespace
}  // namespace ferry::test
