// Blocks that read values of several blocks before them: gradients are those of autograd in fp64,
// and where they meet they add up whichever operation gives them.

#include <gtest/gtest.h>

#include "models/blocks/block_builder.h"
#include "models/core/compile.h"
#include "tests/models/model_runner.h"
#include "tests/models/program_reference.h"

namespace ferry {
namespace {

constexpr int64_t kWidth = 32, kVocab = 61;
constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7};

/** All layers read the embeddings beside the output of the layer before: with an operation that can
 * add to a gradient, with one that cannot, and unchanged. */
ModelTable table() {
  ModelTable model;
  model.head = HeadKind::causal_lm;
  model.width = kWidth;
  model.vocab_size = kVocab;
  ModelBuilder builder(model, "", /*gpu_multiprocessors=*/192);
  {
    BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
    b.end(b.embedding("sum", b.words("word", kVocab, kWidth, {"word"}), kNone, kNone));
  }
  const int embedded = builder.output();
  for (const char* name : {"adds", "cannot_add", "passes_on"}) {
    BlockBuilder b = builder.block(name, BlockKind::layer);
    const ParamId w = b.matrix("w", kWidth, kWidth, {std::string(name) + ".w"});
    const ParamId v = b.matrix("v", kWidth, kWidth, {std::string(name) + ".v"});
    const ValueId x = b.input(), e = b.read(embedded);
    const ValueId mapped = b.tanh("mapped", b.linear("wx", x, w));
    if (name == std::string("adds"))
      b.end(b.linear("y", e, v, kNone, mapped));
    else if (name == std::string("cannot_add"))
      b.end(b.linear("y", b.tanh("tanh", e), v, kNone, mapped));
    else
      b.end(b.add("y", b.linear("vx", mapped, v), e));
  }
  BlockBuilder b = builder.block("head", BlockKind::head);
  b.vocabulary_loss(b.input(), b.borrow_words(), kNone);
  b.end();
  return model;
}

const Port& port_of(const BlockTable& block, int value) {
  const auto found = std::ranges::find(block.ports, value, &Port::value);
  EXPECT_NE(found, block.ports.end()) << block.name;
  return *found;
}

TEST(Ports, TheLastBlockLeavesAGradientAndThoseBeforeAddToIt) {
  const ModelTable model = table();
  const int embedded = model.blocks[0].ports[0].value;
  const int gradient = model.values[embedded].gradient;
  using enum PortUse;
  EXPECT_EQ(port_of(model.blocks[3], gradient), (Port{gradient, none, writes}));
  EXPECT_EQ(port_of(model.blocks[2], gradient), (Port{gradient, none, changes}));
  // The first layer reads the embeddings twice: once as the output of the block before.
  EXPECT_EQ(port_of(model.blocks[1], gradient), (Port{gradient, none, changes}));
  EXPECT_EQ(port_of(model.blocks[0], gradient), (Port{gradient, none, reads}));
  EXPECT_EQ(model.backwards, (std::vector<int>{4, 3, 2, 1, 0}));
}

TEST(Ports, GradientsOfSeveralReadersAreThoseOfAutograd) {
  const ModelTable model = table();
  test::TestBatch batch({20, 7, 5}, 1, kVocab, 4);
  BatchTensors& b = batch.tensors;
  b.labels = b.input_ids.clone();
  b.labels.narrow(0, 27, 5).fill_(-100);
  b.loss_weight = 1.0f / 27;
  test::ModelRunner runner(model, LossKind::causal_lm, b.shape);
  runner.randomise(5, 0.3f);
  runner.poison();
  test::ProgramReference reference(runner);
  at::Tensor loss = reference.loss(batch);
  loss.backward();
  EXPECT_NEAR(runner.forward(kKey, b), loss.item<double>(), 1e-5);
  runner.backward(kKey, b);
  const test::ProgramReference::Grads expected = reference.grads();
  const std::map<std::string, at::Tensor> grads = runner.hf_grads();
  for (const HfEntry& entry : model.hf_names) {
    const at::Tensor& grad = expected.at({entry.block, entry.param});
    EXPECT_GT(grad.abs().max().item<double>(), 1e-4) << entry.hf_name;
    EXPECT_LT((grads.at(entry.hf_name).to(at::kDouble) - grad).abs().max().item<double>(), 1e-6)
        << entry.hf_name;
  }
}

}  // namespace
}  // namespace ferry
