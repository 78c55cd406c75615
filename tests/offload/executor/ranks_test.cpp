// Several ranks have the bits of one: each holds a part of every block, runs its own micro-batches
// and adds all gradients in the order of the step's micro-batches.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <numeric>
#include <thread>

#include "offload/step/passes.h"
#include "tests/offload/executor/thread_link.h"
#include "tests/offload/executor/toy_run.h"

namespace ferry::test {
namespace {

/** Sizes that are cut unevenly, with tied tensors that lie in several parts. */
ShapeOptions sizes(const ToyKind& kind) {
  return {.compute = kind.compute,
          .n_micro_max = 4,
          .large_tensor_elements = 5 * simd::kNormChunk + 300,
          .embedding_elements = 2 * simd::kNormChunk + 700,
          .optim = kind.optim,
          .split_master = kind.split_master};
}

struct Left {
  std::vector<std::vector<std::byte>> states;  ///< segment by segment of each tensor, whole
  std::vector<double> losses, square_sums;
  std::vector<double> evaluations;  ///< of the first rank
  bool operator==(const Left&) const = default;
};

ToyOptions options_of(const ShapeOptions& o) {
  return {.shape = make_shape(o), .n_micro = {4, 1, 3, 2, 4}, .evaluate_after = 1};
}

Left run_one(const ToyOptions& options) {
  ToyRun run(options);
  for (size_t s = 0; s < options.n_micro.size(); ++s) {
    run.step(options.n_micro[s]);
    if (static_cast<int>(s) == options.evaluate_after) run.evaluate();
  }
  const ToyResult result = run.result();
  return {run.states_by_segment(), result.losses, result.square_sums, result.evaluations};
}

/** Takes the steps on ranks that are threads, and puts their parts together. */
Left run_ranks(const ShapeOptions& o, int world, const std::function<void(ToyOptions&)>& change) {
  ThreadRanks ranks(world);
  std::vector<Left> left(static_cast<size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      ShapeOptions its = o;
      its.ranks.rank = rank;
      its.ranks.world = world;
      ToyOptions options = options_of(its);
      options.link = ranks.link(rank);
      if (change) change(options);
      left[static_cast<size_t>(rank)] = run_one(options);
    });
  for (std::thread& thread : threads)
    thread.join();
  Left whole = left.front();
  ShapeOptions of_one = o;
  of_one.ranks = {};
  const StepShape shape = make_shape(of_one);
  for (size_t r = 1; r < left.size(); ++r) {
    EXPECT_EQ(left[r].losses, whole.losses);
    EXPECT_EQ(left[r].square_sums, whole.square_sums);
    size_t i = 0;
    for (int b = 0; b < shape.n_blocks(); ++b)
      for (const TensorExtent& t : shape.blocks[b].tensors)
        for (Segment s : lasting_segments(shape.optim)) {
          if (!is_in_segment(shape, s, t)) continue;
          const bool has_exponents = segment_dtype(shape, b, s) == DType::u8;
          for (int n = has_exponents ? 2 : 1; n > 0; --n, ++i) {
            std::vector<std::byte>& all = whole.states[i];
            const std::vector<std::byte>& part = left[r].states[i];
            if (t.trainable || all.empty())
              all.insert(all.end(), part.begin(), part.end());
            else
              EXPECT_TRUE(part.empty() || part == all);
          }
        }
    EXPECT_EQ(i, whole.states.size());
  }
  return whole;
}

/** Each rank's queues run in this mode, from a seed of the rank. */
void set_mode(ToyOptions& options, SimulatedMode mode, int seed) {
  options.device.mode = mode;
  options.device.seed =
      static_cast<uint64_t>(seed) * 10 + static_cast<uint64_t>(options.shape.ranks.rank);
}

class RanksTest : public testing::TestWithParam<ToyKind> {
 protected:
  ShapeOptions sizes() const { return test::sizes(GetParam()); }
};

constexpr Placing kRankPlacings[] = {Placing::host, Placing::gpu, Placing::weights_on_gpu,
                                     Placing::drive};

/** Several micro-batches are under way in the stages, or a block's weights serve all of them. */
TEST_P(RanksTest, EvaluateSeveralMicroBatchesAtOnce) {
  constexpr int kEvaluated = 3;
  const auto evaluates = [](ToyOptions& options) { options.n_evaluated = kEvaluated; };
  ToyOptions one = options_of(sizes());
  evaluates(one);
  const Left expected = run_one(one);
  ASSERT_EQ(expected.evaluations.size(), size_t{kEvaluated});
  EXPECT_EQ(expected.evaluations.front(), run_one(options_of(sizes())).evaluations.front());
  EXPECT_NE(expected.evaluations[0], expected.evaluations[1]);
  for (const Placing placing : kRankPlacings)
    for (const auto order : {AccumulationOrder::vertical, AccumulationOrder::horizontal})
      for (const int world : {1, 2, 3}) {
        ShapeOptions o = sizes();
        o.placing = placing;
        o.order = order;
        o.ranks.n_stages = world;
        SCOPED_TRACE(testing::Message() << world << " stages, placing " << static_cast<int>(placing)
                                        << ", order " << static_cast<int>(order));
        EXPECT_EQ(run_ranks(o, world, evaluates), expected);
      }
}

TEST_P(RanksTest, HaveTheBitsOfOneInEveryPlaceAndOrder) {
  const Left expected = run_one(options_of(sizes()));
  ASSERT_EQ(expected.losses.size(), 5u);
  for (int world : {2, 3, 4})
    for (Placing placing : kRankPlacings)
      for (AccumulationOrder order : {AccumulationOrder::horizontal, AccumulationOrder::vertical}) {
        ShapeOptions o = sizes();
        o.placing = placing;
        o.order = order;
        EXPECT_EQ(run_ranks(o, world, {}), expected)
            << world << " ranks, placing " << static_cast<int>(placing) << ", order "
            << static_cast<int>(order);
      }
}

TEST_P(RanksTest, HaveTheBitsOfOneInWhateverOrderQueuesRun) {
  const Left expected = run_one(options_of(sizes()));
  int seed = 0;
  for (int world : {2, 3})
    for (Placing placing : kRankPlacings)
      for (SimulatedMode mode : {SimulatedMode::adversarial, SimulatedMode::threads}) {
        ShapeOptions o = sizes();
        o.placing = placing;
        o.order = ++seed % 2 ? AccumulationOrder::horizontal : AccumulationOrder::vertical;
        o.mixed_activations = true;
        o.layer_inputs_on_host = seed % 3 == 0;
        const auto change = [&](ToyOptions& options) { set_mode(options, mode, seed); };
        EXPECT_EQ(run_ranks(o, world, change), expected) << world << " ranks, seed " << seed;
      }
}

/** By rank of two, three and four. */
const std::vector<int> kUnlikeShares[] = {{2, 1}, {1, 3}, {3, 1, 2}, {1, 4, 1, 2}};

TEST_P(RanksTest, HaveTheBitsOfOneHoweverMicroBatchesAreShared) {
  const auto steps = [](ToyOptions& options) { options.n_micro = {7, 1, 5, 2}; };
  ShapeOptions o = sizes();
  o.n_micro_max = 7;
  ToyOptions options = options_of(o);
  steps(options);
  const Left expected = run_one(options);
  int seed = 0;
  for (size_t i = 0; i < std::size(kUnlikeShares); ++i)
    for (Placing placing : kRankPlacings) {
      o.ranks.shares = kUnlikeShares[i];
      o.placing = placing;
      o.order = (i + static_cast<size_t>(++seed)) % 2 ? AccumulationOrder::horizontal
                                                      : AccumulationOrder::vertical;
      o.mixed_activations = seed % 3 == 0;
      o.layer_inputs_on_host = seed % 5 == 0;
      o.gathers_each_pass = placing == Placing::gpu ? seed % 3 : 0;
      const auto change = [&](ToyOptions& its) {
        steps(its);
        set_mode(its, seed % 3 ? SimulatedMode::adversarial : SimulatedMode::threads, seed);
      };
      EXPECT_EQ(run_ranks(o, static_cast<int>(o.ranks.shares.size()), change), expected)
          << testing::PrintToString(o.ranks.shares) << ", seed " << seed;
    }
}

TEST_P(RanksTest, HaveTheBitsOfOneWithPartsGatheredForEachPass) {
  const Left expected = run_one(options_of(sizes()));
  int seed = 0;
  for (int world : {2, 3, 4})
    for (int gathers : {1, 2})
      for (AccumulationOrder order : {AccumulationOrder::horizontal, AccumulationOrder::vertical})
        for (SimulatedMode mode :
             {SimulatedMode::serial, SimulatedMode::adversarial, SimulatedMode::threads}) {
          ShapeOptions o = sizes();
          o.placing = Placing::gpu;
          o.gathers_each_pass = gathers;
          o.order = order;
          o.mixed_activations = ++seed % 2 == 0;
          const auto change = [&](ToyOptions& options) {
            for (int b = 1; seed % 3 == 0 && b < options.shape.n_blocks(); b += 3)
              options.shape.blocks[b].place = Place::host;
            set_mode(options, mode, seed);
          };
          EXPECT_EQ(run_ranks(o, world, change), expected) << world << " ranks, seed " << seed;
        }
}

TEST_P(RanksTest, HaveNoWeightsButTheirPartsWhereEachPassGathers) {
  ShapeOptions o = sizes();
  o.placing = Placing::gpu;
  o.ranks = {.rank = 1, .world = 4};
  const auto weights_bytes = [&] {
    return make_layout(make_shape(o)).bytes_of(Tag::weights, Place::device);
  };
  const int64_t whole = weights_bytes();
  o.gathers_each_pass = 1;
  const int64_t parts = weights_bytes();
  // Beside slots of their own, whose tensors are whole, blocks have their parts.
  const bool has_weights = o.compute != DType::f32;
  EXPECT_EQ(parts > 0, has_weights);
  EXPECT_LT(4 * parts, whole);
}

TEST_P(RanksTest, HaveTheBitsOfOneWhateverIsFrozen) {
  for (Frozen frozen : {Frozen::first_blocks, Frozen::middle_block, Frozen::all_but_embeddings,
                        Frozen::second_tensors}) {
    ShapeOptions o = sizes();
    o.frozen = frozen;
    const Left expected = run_one(options_of(o));
    for (Placing placing : kRankPlacings) {
      o.placing = placing;
      EXPECT_EQ(run_ranks(o, 3, {}), expected)
          << "frozen " << static_cast<int>(frozen) << ", placing " << static_cast<int>(placing);
    }
  }
}

TEST_P(RanksTest, HaveTheBitsOfOneWithoutClipping) {
  const auto without = [](ToyOptions& options) { options.clips = false; };
  ToyOptions options = options_of(sizes());
  without(options);
  const Left expected = run_one(options);
  for (Placing placing : kRankPlacings) {
    ShapeOptions o = sizes();
    o.placing = placing;
    EXPECT_EQ(run_ranks(o, 2, without), expected) << "placing " << static_cast<int>(placing);
  }
}

const std::map<int, std::vector<int>> kSharesOf = {{2, {2, 1}}, {3, {1, 3, 1}}, {4, {1, 2, 2, 1}}};

/** The ways of a run with its blocks split over ranks. */
constexpr Placing kDealtPlacings[] = {
    Placing::host,          Placing::gpu,   Placing::mixed,        Placing::weights_on_gpu,
    Placing::states_on_gpu, Placing::drive, Placing::all_on_drive, Placing::everything_on_drive};

constexpr SimulatedMode kRankModes[] = {SimulatedMode::serial, SimulatedMode::adversarial,
                                        SimulatedMode::threads};

/** A third of the cases; FERRY_LONG=1: all of them. */
int stride_of_cases() {
  return std::getenv("FERRY_LONG") ? 1 : 3;
}

TEST_P(RanksTest, HaveTheBitsOfOneWithTheBlocksInTurn) {
  ShapeOptions o = sizes();
  o.n_layers = 4;
  o.order = AccumulationOrder::vertical;
  const Left expected = run_one(options_of(o));
  int seed = 0;
  for (int world : {2, 3, 4})
    for (Placing placing : kDealtPlacings) {
      o.ranks.n_stages = world;
      o.placing = placing;
      o.mixed_activations = ++seed % 2;
      o.layer_inputs_on_host = seed % 3 == 0;
      o.n_layer_input_slots = 2 + seed % 4;
      o.ranks.shares = seed % 5 < 2 ? kSharesOf.at(world) : std::vector<int>();
      const auto change = [&](ToyOptions& options) {
        set_mode(options, kRankModes[seed / 2 % 3], seed);
      };
      EXPECT_EQ(run_ranks(o, world, change), expected)
          << world << " ranks, placing " << static_cast<int>(placing) << ", seed " << seed;
    }
}

TEST_P(RanksTest, HaveTheBitsOfOneInAPipeline) {
  ShapeOptions o = sizes();
  o.n_layers = 5;
  o.n_micro_max = 7;
  const auto steps = [](ToyOptions& options) { options.n_micro = {7, 1, 5, 2}; };
  ToyOptions options = options_of(o);
  steps(options);
  const Left expected = run_one(options);
  int n_cases = 0;
  for (int world : {2, 3, 4, 8})
    for (Placing placing : kDealtPlacings) {
      o.ranks.n_stages = world;
      if (placing == Placing::everything_on_drive) continue;  // gradients are added to
      if (n_cases++ % stride_of_cases()) continue;
      const int way = n_cases / stride_of_cases();
      o.placing = placing;
      o.n_chunks = 1 + way % 3;
      o.mixed_activations = way % 2;
      o.layer_inputs_on_host = way % 3 == 0;
      o.n_layer_input_slots = 2 + way % 4;
      o.ranks.shares = way % 5 < 2 && world < 8 ? kSharesOf.at(world) : std::vector<int>();
      const auto change = [&](ToyOptions& its) {
        steps(its);
        set_mode(its, kRankModes[way / 2 % 3], way);
      };
      EXPECT_EQ(run_ranks(o, world, change), expected)
          << world << " ranks, placing " << static_cast<int>(placing) << ", seed " << way;
    }
}

/** With each choice of frozen tensors and placing in turn; every `stride`-th of these cases. */
void expect_bits_of_one_whatever_is_frozen(ShapeOptions o,
                                           int world,
                                           const std::vector<Placing>& placings,
                                           int stride) {
  const Ranks ranks = o.ranks;
  int n_cases = 0;
  for (Frozen frozen : {Frozen::first_blocks, Frozen::middle_block, Frozen::all_but_embeddings,
                        Frozen::second_tensors})
    for (bool tied : {true, false}) {
      o.frozen = frozen;
      o.tied = tied;
      o.placing = Placing::host;
      o.ranks = {};
      const Left expected = run_one(options_of(o));
      o.ranks = ranks;
      for (Placing placing : placings) {
        if (n_cases++ % stride) continue;
        o.placing = placing;
        EXPECT_EQ(run_ranks(o, world, {}), expected)
            << "frozen " << static_cast<int>(frozen) << ", tied " << tied << ", placing "
            << static_cast<int>(placing);
      }
      ++n_cases;  // so that a stride meets all placings
    }
}

TEST_P(RanksTest, HaveTheBitsOfOneWithTheBlocksInTurnWhateverIsFrozen) {
  ShapeOptions o = sizes();
  o.order = AccumulationOrder::vertical;
  o.ranks.n_stages = 3;
  expect_bits_of_one_whatever_is_frozen(o, 3, {Placing::host, Placing::gpu, Placing::all_on_drive},
                                        1);
}

TEST_P(RanksTest, HaveTheBitsOfOneInAPipelineWhateverIsFrozen) {
  ShapeOptions o = sizes();
  o.ranks.n_stages = 3;
  expect_bits_of_one_whatever_is_frozen(o, 3, {Placing::host, Placing::gpu, Placing::all_on_drive},
                                        stride_of_cases());
}

TEST_P(RanksTest, HaveTheBitsOfOneInReplicasOfSeveralStagesWhateverIsFrozen) {
  ShapeOptions o = sizes();
  o.ranks.n_stages = 2;
  for (AccumulationOrder order : {AccumulationOrder::horizontal, AccumulationOrder::vertical}) {
    o.order = order;
    SCOPED_TRACE(static_cast<int>(order));
    expect_bits_of_one_whatever_is_frozen(
        o, 4, {Placing::host, Placing::gpu, Placing::weights_on_gpu}, stride_of_cases());
  }
}

/** Two, three and four replicas of two stages, and two of three. */
constexpr std::pair<int, int> kReplicasOfStages[] = {{4, 2}, {6, 2}, {8, 2}, {6, 3}};

TEST_P(RanksTest, HaveTheBitsOfOneInReplicasOfSeveralStages) {
  ShapeOptions o = sizes();
  o.n_layers = 4;
  o.n_micro_max = 7;
  const auto steps = [](ToyOptions& options) { options.n_micro = {7, 1, 5, 2}; };
  ToyOptions options = options_of(o);
  steps(options);
  const Left expected = run_one(options);
  int n_cases = 0;
  for (const auto& [world, n_stages] : kReplicasOfStages)
    for (AccumulationOrder order : {AccumulationOrder::horizontal, AccumulationOrder::vertical})
      for (Placing placing : kRankPlacings) {
        if (n_cases++ % stride_of_cases()) continue;
        const int way = n_cases / stride_of_cases();
        o.ranks.n_stages = n_stages;
        o.order = order;
        o.placing = placing;
        o.n_chunks = 1 + way % 3;
        o.mixed_activations = way % 2;
        o.layer_inputs_on_host = way % 3 == 0;
        o.n_layer_input_slots = 2 + way % 4;
        o.gathers_each_pass = placing == Placing::gpu ? way % 3 : 0;
        const auto change = [&](ToyOptions& its) {
          steps(its);
          set_mode(its, kRankModes[way / 2 % 3], way);
        };
        EXPECT_EQ(run_ranks(o, world, change), expected)
            << world << " ranks, " << n_stages << " stages, placing " << static_cast<int>(placing)
            << ", order " << static_cast<int>(order) << ", seed " << way;
      }
}

/** By stage: the passes of a step, as "F0 B0" with the micro-batch's number. */
std::vector<std::string> passes_by_stage(const StepShape& shape, int n_micro) {
  std::vector<std::string> of_stages(static_cast<size_t>(shape.ranks.n_stages));
  for (const BlockPass& pass : passes_of(shape, {shape.ranks, n_micro}, 0, true)) {
    std::string& its = of_stages[static_cast<size_t>(shape.blocks[pass.block].stage)];
    its += (its.empty() ? "" : " ") + std::string(pass.backward ? "B" : "F") +
           std::to_string(pass.micro);
  }
  return of_stages;
}

TEST(Pipeline, TakesForwardsAndBackwardsByTurns) {
  ShapeOptions o;
  o.n_layers = 1;  // three blocks
  o.tied = false;
  o.ranks = {.world = 3, .n_stages = 3};
  o.n_micro_max = 5;
  EXPECT_EQ(
      passes_by_stage(make_shape(o), 5),
      (std::vector<std::string>{"F0 F1 F2 B0 F3 B1 F4 B2 B3 B4", "F0 F1 F2 B0 B1 F3 B2 F4 B3 B4",
                                "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4"}));
  EXPECT_EQ(passes_by_stage(make_shape(o), 1), (std::vector<std::string>(3, "F0 B0")));
}

TEST(Pipeline, HasAsManyMicroBatchesUnderWayAsRanks) {
  for (int world : {2, 3, 4})
    for (bool tied : {true, false}) {
      ShapeOptions o;
      o.n_layers = 6;
      o.tied = tied;
      o.ranks = {.world = world, .n_stages = world};
      o.n_micro_max = 9;
      const StepShape shape = make_shape(o);
      EXPECT_EQ(shape.n_live(), world);
      std::vector<int> n_done(9, 0);
      const std::vector<BlockPass> passes = passes_of(shape, {shape.ranks, 9}, 0, true);
      const int n_each = static_cast<int>(passes.size()) / 9;
      for (const BlockPass& pass : passes) {
        const auto micro = static_cast<size_t>(pass.micro);
        if (pass.micro >= world && n_done[micro] == 0) {
          EXPECT_EQ(n_done[micro - static_cast<size_t>(world)], n_each)
              << "micro-batch " << micro << " of " << world << " ranks";
        }
        ++n_done[micro];
      }
    }
}

TEST(Pipeline, GivesEachRankBlocksThatFollowEachOther) {
  ShapeOptions o;
  o.n_layers = 6;
  o.tied = false;
  const auto ranks_of_blocks = [&] {
    const StepShape shape = make_shape(o);
    std::vector<int> ranks;
    for (const BlockShape& block : shape.blocks)
      ranks.push_back(block.stage);
    return ranks;
  };
  o.ranks = {.world = 3, .n_stages = 3};
  EXPECT_EQ(ranks_of_blocks(), (std::vector<int>{0, 0, 0, 1, 1, 2, 2, 2}));
  o.ranks.shares = {1, 1, 4};
  EXPECT_EQ(ranks_of_blocks(), (std::vector<int>{0, 0, 1, 2, 2, 2, 2, 2}));
  o.ranks = {.world = 8, .n_stages = 8};
  EXPECT_EQ(ranks_of_blocks(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  o.ranks = {.world = 2, .n_stages = 2};
  o.n_chunks = 2;
  EXPECT_EQ(ranks_of_blocks(), (std::vector<int>{0, 0, 1, 1, 0, 0, 1, 1}));
  o.n_chunks = 1;
  o.tied = true;  // the head is where the embeddings are
  EXPECT_EQ(ranks_of_blocks(), (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 0}));
}

TEST_P(RanksTest, HaveTheBitsOfOneWhereSomeHaveNoBlock) {
  ShapeOptions o = sizes();
  o.n_layers = 2;
  o.order = AccumulationOrder::vertical;
  const Left expected = run_one(options_of(o));
  o.ranks.n_stages = 6;
  for (Placing placing : {Placing::host, Placing::drive}) {
    o.placing = placing;
    EXPECT_EQ(run_ranks(o, 6, {}), expected) << "placing " << static_cast<int>(placing);
  }
}

/** The sums of the ranks' own micro-batches are other sums: the bits depend on the number of ranks,
 * and on nothing else. */
TEST_P(RanksTest, HaveTheSameBitsEverywhereIfSumsAreExchanged) {
  ShapeOptions o = sizes();
  o.order = AccumulationOrder::vertical;
  const Left of_one = run_one(options_of(o));
  o.reduction = Reduction::fast;
  for (int world : {2, 3, 4}) {
    o.placing = Placing::host;
    const Left expected = run_ranks(o, world, {});
    // Four ranks have one micro-batch each. So few values of fp16 are added without rounding.
    if (world == 4) {
      EXPECT_EQ(expected, of_one);
    } else if (o.compute != DType::f16) {
      EXPECT_NE(expected.square_sums, of_one.square_sums) << world;
    }
    EXPECT_EQ(expected.losses.front(), of_one.losses.front());
    EXPECT_NEAR(expected.square_sums.front(), of_one.square_sums.front(),
                1e-5 * of_one.square_sums.front());
    int seed = 0;
    for (Placing placing : kRankPlacings)
      for (SimulatedMode mode :
           {SimulatedMode::serial, SimulatedMode::adversarial, SimulatedMode::threads}) {
        o.placing = placing;
        o.mixed_activations = ++seed % 2;
        const auto change = [&](ToyOptions& options) { set_mode(options, mode, seed); };
        EXPECT_EQ(run_ranks(o, world, change), expected)
            << world << " ranks, placing " << static_cast<int>(placing) << ", seed " << seed;
      }
  }
}

/** Sums of unlike shares have bits of their own, the same in every place. */
TEST_P(RanksTest, HaveTheSameBitsEverywhereIfSumsOfUnlikeSharesAreExchanged) {
  ShapeOptions o = sizes();
  o.order = AccumulationOrder::vertical;
  o.reduction = Reduction::fast;
  for (const std::vector<int>& shares : kUnlikeShares) {
    o.ranks.shares = shares;
    o.placing = Placing::host;
    const auto world = static_cast<int>(shares.size());
    const Left expected = run_ranks(o, world, {});
    for (Placing placing : kRankPlacings) {
      o.placing = placing;
      EXPECT_EQ(run_ranks(o, world, {}), expected) << testing::PrintToString(shares);
    }
  }
}

TEST(Rounds, DealEachMicroBatchOnceInTheSharesOfTheRanks) {
  for (const std::vector<int>& shares : kUnlikeShares)
    for (int n_micro = 1; n_micro <= 60; ++n_micro) {
      Ranks ranks = {.world = static_cast<int>(shares.size()), .shares = shares};
      const Rounds rounds(ranks, n_micro);
      const double all = std::accumulate(shares.begin(), shares.end(), 0);
      EXPECT_LE(n_micro, n_micro_of_rounds(ranks, rounds.n()));
      EXPECT_GT(n_micro, n_micro_of_rounds(ranks, rounds.n() - 1));
      std::vector<int> dealt;
      for (ranks.rank = 0; ranks.rank < ranks.world; ++ranks.rank) {
        const std::vector<int> micros = rounds.micros_of(ranks.rank);
        EXPECT_EQ(rounds.n_of(ranks.rank), std::ssize(micros));
        EXPECT_NEAR(static_cast<double>(micros.size()),
                    n_micro * shares[static_cast<size_t>(ranks.rank)] / all, 1.0)
            << n_micro;
        for (size_t nth = 0; nth < micros.size(); ++nth)
          EXPECT_EQ(micro_of_step(ranks, static_cast<int>(nth)), micros[nth]);
        dealt.insert(dealt.end(), micros.begin(), micros.end());
      }
      std::ranges::sort(dealt);
      std::vector<int> each(static_cast<size_t>(n_micro));
      std::iota(each.begin(), each.end(), 0);
      EXPECT_EQ(dealt, each);
    }
}
/** A rank's backwards of one block, by round: it runs one and they exchange it (B), it only takes
 * its part (t), it runs one that waits (w), or that is exchanged now (e). */
std::string backwards_of_block(const ShapeOptions& o, int n_micro) {
  const StepShape shape = make_shape(o);
  std::string all;
  int waiting = -1;
  const std::vector<BlockPass> passes =
      passes_of(shape, {shape.ranks, n_micro}, shape.ranks.rank, true);
  for (size_t t = 0; t < passes.size(); ++t) {
    const BlockPass& pass = passes[t];
    if (!pass.backward || pass.block != 1) continue;
    if (pass.waits) waiting = static_cast<int>(t);
    if (pass.ran_in >= 0) {
      EXPECT_EQ(pass.ran_in, waiting);
      EXPECT_EQ(pass.micro, passes[static_cast<size_t>(waiting)].micro);
      EXPECT_FALSE(pass.runs) << "a second time";
    }
    all += pass.waits ? "w" : pass.ran_in >= 0 ? "e" : pass.runs ? "B" : "t";
    all += std::to_string(pass.round);
  }
  return all;
}

TEST(Rounds, OfOthersComeAfterTheBackwardOfASlowerRank) {
  ShapeOptions o;
  o.n_layers = 1;
  o.order = AccumulationOrder::vertical;
  o.ranks = {.rank = 1, .world = 2, .shares = {3, 1}};
  o.n_micro_max = 6;
  EXPECT_EQ(backwards_of_block(o, 8), "w2t0t1e2w5t3t4e5");
  EXPECT_EQ(backwards_of_block(o, 6), "w2t0t1e2t3t4") << "none is left for it";
  o.ranks.rank = 0;
  EXPECT_EQ(backwards_of_block(o, 8), "B0B1B2B3B4B5");
  o.ranks = {.rank = 1, .world = 2};
  o.n_micro_max = 3;
  EXPECT_EQ(backwards_of_block(o, 5), "B0B1t2");
}

TEST(Rounds, OfOneShareGoOverTheRanksInOrder) {
  const Rounds rounds({.world = 3}, 8);
  EXPECT_EQ(rounds.n(), 3);
  EXPECT_EQ(rounds.present(0), (std::vector{0, 1, 2}));
  EXPECT_EQ(rounds.present(2), (std::vector{0, 1}));
  EXPECT_EQ(rounds.present_by(2), (std::vector{0, 1, 2}));
  EXPECT_EQ(micro_of_step({.rank = 2, .world = 3}, 4), 14);
}

std::string name_of_kind(const testing::TestParamInfo<ToyKind>& kind) {
  return text_of(kind.param);
}
INSTANTIATE_TEST_SUITE_P(Kinds, RanksTest, testing::ValuesIn(kToyKinds), name_of_kind);

}  // namespace
}  // namespace ferry::test
