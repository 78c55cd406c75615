// The passes that are derived from a block's program: what is saved and what is made again, in
// which order, and how much scratch the temporaries take.

#include "models/core/pass_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/blocks/block_builder.h"
#include "models/core/compile.h"
#include "models/core/operation.h"
#include "models/decoder/decoder_table.h"
#include "models/ops/add/add_op.h"
#include "models/ops/norm/norm_op.h"
#include "src/base/bytes.h"
#include "tests/models/small_families.h"

namespace ferry {
namespace {

constexpr int64_t kWidth = 64;
constexpr BatchShape kShape = {.tokens = 128, .n_seqs_max = 4, .max_length = 64};

ModelTable empty_model() {
  ModelTable model;
  model.width = kWidth;
  model.compute = DType::bf16;
  model.vocab_size = 1000;
  return model;
}

std::vector<std::string> saved_names(const BlockTable& block) {
  std::vector<std::string> names;
  for (const SavedSpec& spec : block.saved(kShape))
    names.push_back(spec.name);
  return names;
}

/** The place is where the backward finds the gradient of the block's output. */
bool is_grad_of_output(const BlockTable& block, const PassPlan& pass, int place) {
  const PassPlace& its = pass.places[static_cast<size_t>(place)];
  return its.kind == PlaceKind::port && block.ports[its.port].backward == PortUse::reads;
}
/** The same where the backward leaves the gradient of the input. */
bool is_grad_of_input(const BlockTable& block, const PassPlan& pass, int place) {
  const PassPlace& its = pass.places[static_cast<size_t>(place)];
  return its.kind == PlaceKind::port && block.ports[its.port].backward == PortUse::writes;
}

/** "op part" of each call. */
std::vector<std::pair<std::string_view, Part>> calls_of(const BlockTable& block,
                                                        const PassPlan& pass) {
  std::vector<std::pair<std::string_view, Part>> calls;
  for (const Call& call : pass.calls)
    calls.emplace_back(block.compiled->plan.op_of(block.compiled->program, call).def->name,
                       call.part);
  return calls;
}

/** y = x + down(gelu(up(norm(x)))): a layer in small. */
BlockTable mlp(bool recomputes) {
  ModelTable model = empty_model();
  ModelBuilder builder(model, "", 1);
  BlockBuilder b = builder.block("layer", BlockKind::layer);
  const ParamId norm_weight = b.norm_weight("norm.weight", kWidth, {"n"});
  const ParamId norm_bias = b.bias("norm.bias", kWidth, {"nb"});
  const ParamId up = b.matrix("up", 4 * kWidth, kWidth, {"u"});
  const ParamId up_bias = b.bias("up_bias", 4 * kWidth, {"ub"});
  const ParamId down = b.matrix("down", kWidth, 4 * kWidth, {"d"});
  const ValueId x = b.input();
  const ValueId normed = b.norm("normed", x, norm_weight, norm_bias, 1e-5f);
  const auto [h, g] = b.activation("g", Activation::gelu, b.linear("h", normed, up), up_bias);
  if (recomputes) b.recompute(h);
  b.end(b.linear("y", g, down, kNone, x));
  return model.blocks[0];
}

TEST(PassPlan, SavesWhatTheBackwardReadsAndCannotMakeAgain) {
  // The norm's output and gelu's are made again from these.
  EXPECT_EQ(saved_names(mlp(false)), (std::vector<std::string>{"h", "normed.mean", "normed.rstd"}));
}

TEST(PassPlan, AMapsWeightsWaitForTheInputThatTheNextBackwardMakesAgain) {
  const BlockTable block = mlp(false);
  using enum Part;
  EXPECT_EQ(calls_of(block, block.compiled->plan.backward),
            (std::vector<std::pair<std::string_view, Part>>{
                {"linear", backward},      // of down
                {"activation", backward},  // and its output again
                {"linear", params},        // of down
                {"norm", remake},
                {"linear", params},  // of up
                {"linear", backward},
                {"norm", backward}}));
}

TEST(PassPlan, AddsAResidualsGradientWhereItIs) {
  const BlockTable block = mlp(false);
  const PassPlan& pass = block.compiled->plan.backward;
  const auto last = named<ops::NormGrads, int>(pass.calls.back().places);
  EXPECT_TRUE(is_grad_of_output(block, pass, last.sum));
  EXPECT_TRUE(is_grad_of_input(block, pass, last.dz));
  // The gradient of the norm's output lies where the input's will be.
  EXPECT_TRUE(is_grad_of_input(block, pass, last.dy));
}

TEST(PassPlan, RecomputesFromWhatIsKept) {
  const BlockTable block = mlp(true);
  using enum Part;
  EXPECT_EQ(calls_of(block, block.compiled->plan.recompute),
            (std::vector<std::pair<std::string_view, Part>>{
                {"norm", remake}, {"linear", forward}, {"activation", forward}}));
  EXPECT_TRUE(mlp(false).compiled->plan.recompute.calls.empty());
  EXPECT_FALSE(mlp(false).recompute_work);
  EXPECT_EQ(block.recompute_work(kShape).products.size(), 1u);
}

using Calls = std::vector<std::pair<std::string_view, Part>>;

/** The first layer of a small model (small_families.h). */
BlockTable layer_of(test::SmallFamily family) {
  return test::small_table(test::small_model(family)).blocks[1];
}

TEST(PassPlan, ParallelBranchesAddTheirGradientsAtTheInput) {
  const BlockTable block = layer_of(test::SmallFamily::neox);
  using enum Part;
  EXPECT_EQ(saved_names(block),
            (std::vector<std::string>{"qkv", "context", "up", "norm1.mean", "norm1.rstd",
                                      "norm2.mean", "norm2.rstd", "attention.probs"}));
  const PassPlan& pass = block.compiled->plan.backward;
  EXPECT_EQ(calls_of(block, pass), (Calls{{"dropout_residual", backward},  // of y
                                          {"dropout_residual", backward},  // of x + attention
                                          {"linear", params},              // of out
                                          {"linear", backward},
                                          {"linear", backward},  // of down
                                          {"activation", backward},
                                          {"linear", params},  // of down
                                          {"norm", remake},
                                          {"linear", params},  // of up
                                          {"linear", backward},
                                          {"attention", backward},
                                          {"rotary", backward},
                                          {"norm", remake},
                                          {"linear", params},  // of qkv
                                          {"linear", backward},
                                          {"norm", backward},
                                          {"norm", backward}}));
  // Both norms add to the gradient that passed the sums.
  for (const size_t from_end : {1u, 2u}) {
    const Call& call = pass.calls[pass.calls.size() - from_end];
    EXPECT_NE((named<ops::NormGrads, int>(call.places).sum), kNone);
  }
  const auto last = named<ops::NormGrads, int>(pass.calls.back().places);
  EXPECT_TRUE(is_grad_of_input(block, pass, last.dz));
}

TEST(PassPlan, NormsAfterTheBranchesReadWhatTheyNormalise) {
  const BlockTable block = layer_of(test::SmallFamily::gemma2);
  using enum Part;
  // The products before the norms are kept, the norms' outputs are not: the sums pass gradients by.
  EXPECT_EQ(saved_names(block),
            (std::vector<std::string>{"qkv", "context", "out", "sum", "gate_up", "down",
                                      "normed.rstd", "attention.probs", "attended.rstd",
                                      "mlp.normed.rstd", "fed.rstd"}));
  EXPECT_EQ(calls_of(block, block.compiled->plan.backward),
            (Calls{{"rms_norm", backward},  // of fed; the sum itself needs no call
                   {"linear", backward},    // of down
                   {"gate", backward},
                   {"linear", params},  // of down
                   {"rms_norm", remake},
                   {"linear", params},  // of gate_up
                   {"linear", backward},
                   {"rms_norm", backward},  // of mlp.normed
                   {"rms_norm", backward},  // of attended
                   {"linear", params},      // of out
                   {"linear", backward},
                   {"attention", backward},
                   {"rotary", backward},
                   {"rms_norm", remake},
                   {"linear", params},  // of qkv
                   {"linear", backward},
                   {"rms_norm", backward}}));
}

TEST(PassPlan, HeadNormsAreMadeAgainForAttention) {
  const BlockTable block = layer_of(test::SmallFamily::qwen3);
  const std::vector<std::string> names = saved_names(block);
  EXPECT_NE(std::ranges::find(names, "qkv.raw"), names.end());
  EXPECT_EQ(std::ranges::find(names, "qkv"), names.end());
  const Calls calls = calls_of(block, block.compiled->plan.backward);
  const auto remade = std::ranges::find(calls, Calls::value_type("head_norm", Part::remake));
  ASSERT_NE(remade, calls.end());
  EXPECT_EQ(*(remade + 1), Calls::value_type("attention", Part::backward));
}

/** tanh(x) and dropout(x) cannot add to a gradient that is there: both give x one. */
TEST(PassPlan, GradientsThatMeetAreAddedWhereAnOperationCannot) {
  ModelTable model = empty_model();
  ModelBuilder builder(model, "", 1);
  BlockBuilder b = builder.block("layer", BlockKind::layer);
  const ValueId x = b.input();
  const ValueId left = b.tanh("left", x), right = b.tanh("right", x);
  b.end(b.add("y", b.add("sum", left, x), right));
  const BlockPlan& plan = model.blocks[0].compiled->plan;
  using enum Part;
  EXPECT_EQ(calls_of(model.blocks[0], plan.backward),
            (Calls{{"tanh", backward},  // of right: the first part of x's gradient
                   {"add", forward},    // and what passes by
                   {"tanh", backward},  // of left
                   {"add", forward}}));
  EXPECT_EQ(plan.added.size(), 2u);
  const auto last = named<ops::AddValues, int>(plan.backward.calls.back().places);
  EXPECT_TRUE(is_grad_of_input(model.blocks[0], plan.backward, last.y));
}

/** A branch that comes first and a value that is passed on last: no operation writes the gradient
 * of the input. */
TEST(PassPlan, AGradientThatIsPassedOnReachesTheInput) {
  ModelTable model = empty_model();
  ModelBuilder builder(model, "", 1);
  BlockBuilder b = builder.block("layer", BlockKind::layer);
  const ValueId x = b.input();
  b.end(b.add("y", x, x));
  const BlockPlan& plan = model.blocks[0].compiled->plan;
  ASSERT_EQ(plan.backward.calls.size(), 1u);
  const auto sum = named<ops::AddValues, int>(plan.backward.calls[0].places);
  EXPECT_TRUE(is_grad_of_input(model.blocks[0], plan.backward, sum.y));
}

TEST(PassPlan, ScratchIsWhatLivesAtOnce) {
  const BlockTable block = mlp(false);
  const int64_t narrow = kShape.tokens * kWidth * 2, wide = 4 * narrow;
  // The norm's output is read before gelu's is written.
  EXPECT_EQ(block.scratch(kShape).forward_bytes, wide);
  // dg and g again, and the sums of the bias's gradient.
  EXPECT_GE(block.scratch(kShape).backward_bytes, 2 * wide);
  EXPECT_LT(block.scratch(kShape).backward_bytes, 2 * wide + 2 * narrow);
}

/** Temporaries that live at the same time share no byte, and what an operation takes for itself
 * lies beyond them all. */
TEST(PassPlan, TemporariesThatLiveAtOnceLieApart) {
  const ModelTable model = make_decoder_table(llama_3g(), {.compute = DType::bf16});
  for (const BlockTable& block : {model.blocks[0], model.blocks[1], model.blocks.back()})
    for (const PassPlan* pass : {&block.compiled->plan.forward, &block.compiled->plan.backward,
                                 &block.compiled->plan.recompute}) {
      const PassScratch scratch = lay_out(*pass, block.compiled->plan, block.compiled->program,
                                          block.compiled->target, kShape);
      const auto end_of = [&](size_t p) {
        const PassPlace& place = pass->places[p];
        return scratch.offsets[p] + rows_of(place.rows, kShape) * place.columns *
                                        static_cast<int64_t>(size_of(place.type));
      };
      for (size_t a = 0; a < pass->places.size(); ++a) {
        const PassPlace& first = pass->places[a];
        if (first.kind != PlaceKind::temp || first.first_call == kNone) continue;
        EXPECT_LE(end_of(a), scratch.n_bytes);
        for (int c = first.first_call; c <= first.last_call; ++c)
          EXPECT_LE(end_of(a), scratch.call_offsets[static_cast<size_t>(c)]);
        for (size_t b = 0; b < a; ++b) {
          const PassPlace& second = pass->places[b];
          if (second.kind != PlaceKind::temp || second.first_call == kNone) continue;
          const bool at_once =
              first.first_call <= second.last_call && second.first_call <= first.last_call;
          EXPECT_TRUE(!at_once || end_of(a) <= scratch.offsets[b] ||
                      end_of(b) <= scratch.offsets[a])
              << block.name << ": " << a << " and " << b;
        }
      }
    }
}

}  // namespace
}  // namespace ferry
