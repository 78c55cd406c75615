// Values that are parts of others, and operations written in other operations: gradients are those
// of autograd in fp64, and of the operations' own kernels.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/blocks/block_builder.h"
#include "models/core/compile.h"
#include "models/family.h"
#include "models/ops/linear/linear_op.h"
#include "tests/models/model_runner.h"
#include "tests/models/program_reference.h"
#include "tests/models/small_families.h"

namespace ferry {
namespace {

constexpr int64_t kWidth = 32, kVocab = 61, kHead = 8;
constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7};

test::TestBatch batch_of(int64_t vocab) {
  test::TestBatch batch({20, 7, 5}, 1, vocab, 4);
  BatchTensors& b = batch.tensors;
  b.labels = b.input_ids.clone();
  b.labels.narrow(0, 27, 5).fill_(-100);
  b.loss_weight = 1.0f / 27;
  return batch;
}

/** A model of one layer, which `layer` writes. */
template <class Layer>
ModelTable model_of(const Layer& layer) {
  ModelTable model;
  model.head = HeadKind::causal_lm;
  model.width = kWidth;
  model.vocab_size = kVocab;
  ModelBuilder builder(model, "", /*gpu_multiprocessors=*/192);
  {
    BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
    b.end(b.embedding("sum", b.words("word", kVocab, kWidth, {"word"}), kNone, kNone));
  }
  BlockBuilder l = builder.block("layer", BlockKind::layer);
  layer(l);
  BlockBuilder b = builder.block("head", BlockKind::head);
  b.vocabulary_loss(b.input(), b.borrow_words(), kNone);
  b.end();
  return model;
}

ParamId matrix(BlockBuilder& b, const std::string& name, int64_t rows, int64_t columns) {
  return b.matrix(name, rows, columns, {name});
}

void expect_gradients_of_autograd(const ModelTable& model) {
  test::TestBatch batch = batch_of(model.vocab_size);
  test::ModelRunner runner(model, LossKind::causal_lm, batch.tensors.shape);
  runner.randomise(5, 0.3f);
  runner.poison();
  test::ProgramReference reference(runner);
  at::Tensor loss = reference.loss(batch);
  loss.backward();
  EXPECT_NEAR(runner.forward(kKey, batch.tensors), loss.item<double>(), 1e-5);
  runner.backward(kKey, batch.tensors);
  const auto grads = runner.hf_grads();
  for (const HfEntry& entry : model.hf_names) {
    const at::Tensor expected = reference.grads().at({entry.block, entry.param});
    EXPECT_GT(expected.abs().max().item<double>(), 1e-5) << entry.hf_name;
    const at::Tensor found = grads.at(entry.hf_name).to(at::kDouble);
    EXPECT_LT((found - expected).abs().max().item<double>(), 2e-6) << entry.hf_name;
  }
}

/** Queries, keys and values by maps of their own, which write one tensor for the attention; the
 * queries' map with a bias and a residual. */
TEST(Parts, OfAJoinedValueAreWrittenWhereItLies) {
  const ModelTable model = model_of([](BlockBuilder& b) {
    const ParamId q = matrix(b, "q", kWidth, kWidth), k = matrix(b, "k", kHead, kWidth);
    const ParamId v = matrix(b, "v", kHead, kWidth), v_bias = b.bias("vb", kHead, {"vb"});
    const ParamId low = matrix(b, "low", 4, kWidth), high = matrix(b, "high", kWidth, 4);
    const ParamId out = matrix(b, "out", kWidth, kWidth);
    const ValueId x = b.input();
    const ValueId added = b.linear("added", b.linear("lowered", x, low), high);
    const ValueId qkv = b.join("qkv", {b.linear("q", x, q, kNone, added), b.linear("k", x, k),
                                       b.linear("v", x, v, v_bias)});
    const ValueId context =
        b.attention("context", qkv,
                    {.n_heads = kWidth / kHead, .n_kv_heads = 1, .head_width = kHead}, true, 0, 0);
    b.end(b.linear("y", context, out, kNone, x));
  });
  const BlockTable& layer = model.blocks[1];
  int n_saved = 0;
  for (const SavedSpec& saved : layer.saved({.tokens = 8, .n_seqs_max = 1, .max_length = 8})) {
    n_saved += saved.name == "qkv";
    EXPECT_NE(saved.name, "q");
  }
  EXPECT_EQ(n_saved, 1);
  expect_gradients_of_autograd(model);
}

/** One map whose result is taken apart: a part that two maps read, and one that is passed on. */
TEST(Parts, OfAValueGiveItsGradientTogether) {
  expect_gradients_of_autograd(model_of([](BlockBuilder& b) {
    const ParamId both = matrix(b, "both", kWidth + kHead, kWidth);
    const ParamId a = matrix(b, "a", kWidth, kHead), c = matrix(b, "c", kWidth, kHead);
    const ParamId d = matrix(b, "d", kWidth, kWidth);
    const ValueId x = b.input();
    const std::vector<ValueId> parts =
        b.split(b.linear("both", x, both), {{"wide", kWidth}, {"narrow", kHead}});
    const ValueId first = b.tanh("first", b.linear("a", parts[1], a));
    const ValueId second = b.linear("c", parts[1], c, kNone, first);
    b.end(b.linear("d", second, d, kNone, parts[0]));
  }));
}

/** The input of a block is taken apart: it has no operation before it. */
TEST(Parts, OfAnInputReachTheBlockBefore) {
  expect_gradients_of_autograd(model_of([](BlockBuilder& b) {
    const ParamId a = matrix(b, "a", kWidth, kWidth - kHead), c = matrix(b, "c", kWidth, kHead);
    const std::vector<ValueId> parts =
        b.split(b.input(), {{"wide", kWidth - kHead}, {"narrow", kHead}});
    b.end(b.linear("c", parts[1], c, kNone, b.tanh("t", b.linear("a", parts[0], a))));
  }));
}

TEST(Composition, ALinearMapWithABiasAndAResidualIsAMapAndASum) {
  const ModelTable model = model_of([](BlockBuilder& b) {
    const ParamId w = matrix(b, "w", kWidth, kWidth), bias = b.bias("b", kWidth, {"b"});
    const ValueId x = b.input();
    b.end(b.linear("y", b.tanh("t", x), w, bias, x));
  });
  const std::vector<Op>& ops = model.blocks[1].compiled->program.ops;
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[1].def, &ops::kLinear);
  expect_gradients_of_autograd(model);
}

/** Operations with kernels of their own beside the same written in others. */
TEST(Composition, IsAnOracleOfTheKernels) {
  for (const auto family : {test::SmallFamily::gemma2, test::SmallFamily::qwen3,
                            test::SmallFamily::granite, test::SmallFamily::opt350}) {
    const test::SmallModel its = test::small_model(family);
    const ModelTable whole = test::small_table(its);
    ModelTable composed = test::small_table(its);
    size_t n_ops = 0, n_composed = 0;
    for (BlockTable& block : composed.blocks) {
      const CompiledBlock& compiled = *block.compiled;
      n_ops += compiled.program.ops.size();
      ProgramTarget target = compiled.target;
      target.composes_all = true;
      compile(BlockProgram(compiled.program), target, block);
      n_composed += block.compiled->program.ops.size();
    }
    EXPECT_GT(n_composed, n_ops) << name_of(family);
    const test::TestBatch batch = batch_of(test::SmallModel::kVocab);
    test::ModelRunner one(whole, LossKind::causal_lm, batch.tensors.shape),
        other(composed, LossKind::causal_lm, batch.tensors.shape);
    one.randomise(5, 0.2f);
    other.randomise(5, 0.2f);
    EXPECT_NEAR(one.forward(kKey, batch.tensors), other.forward(kKey, batch.tensors), 1e-5);
    one.backward(kKey, batch.tensors);
    other.backward(kKey, batch.tensors);
    const auto grads = one.hf_grads(), expected = other.hf_grads();
    for (const auto& [name, grad] : grads)
      EXPECT_LT((grad - expected.at(name)).abs().max().item<float>(), 2e-6f)
          << name_of(family) << " " << name;
  }
}

}  // namespace
}  // namespace ferry
