// Whole models of a few blocks on the CPU: memory exactly as declared, gradients that fit the loss
// with dropout on, a dummy tail without influence, and the same bits wherever the memory lies.
// Agreement with transformers is tests/parity's.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/adapters/prompt_head.h"
#include "models/adapters/soft_tokens.h"
#include "models/bert/bert_table.h"
#include "tests/models/model_runner.h"

namespace ferry {
namespace {

struct Case {
  LossKind loss = LossKind::cross_entropy;
  DType type = DType::f32;
  float dropout = 0.1f;
  bool names_rows = false;
  WordTokens words = WordTokens::first;  ///< of a prompt
};

ModelTable table_of(const Case& its) {
  BertConfig config;
  config.vocab_size = 300;
  config.hidden_size = 48;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.intermediate_size = 80;
  config.max_position_embeddings = 64;
  TableOptions options;
  const bool is_prompt = its.loss == LossKind::prompt;
  options.head = is_prompt ? HeadKind::masked_lm : head_of(its.loss);
  options.n_labels = 3;
  options.compute = its.type;
  options.hidden_dropout = options.attention_dropout = options.classifier_dropout = its.dropout;
  ModelTable table = make_bert_table(config, options);
  if (!is_prompt) return table;
  // Two labels share a token, and one of a word's tokens is another word.
  const LabelWords words = {.words = {{{7}, {9, 11}}, {{11, 30}}, {{12}, {7, 40}}},
                            .tokens = its.words};
  set_prompt_head(table, {.labels = words, .is_soft = its.names_rows});
  add_soft_tokens(table, std::vector<SoftToken>{{5}, {}, {6, 8}}, "soft_tokens.weight",
                  /*is_delta=*/false);
  return table;
}

/** Ragged sequences and a dummy tail, with labels for the loss. */
test::TestBatch batch_of(const Case& its, uint64_t seed = 4) {
  test::TestBatch batch({40, 7, 64, 1, 20}, 1, 300, seed);
  BatchTensors& b = batch.tensors;
  at::manual_seed(9);
  const int64_t n = b.n_seqs_real;
  switch (its.loss) {
    case LossKind::cross_entropy:
      b.labels = at::randint(0, 3, {n}, at::kInt);
      break;
    case LossKind::multi_label:
      b.labels = at::randint(0, 2, {n, 3}).to(at::kFloat);
      break;
    case LossKind::regression:
      b.labels = at::randn({n, 3});
      break;
    case LossKind::masked_lm: {
      const at::Tensor chosen = at::arange(b.shape.tokens - 20).remainder(5).eq(1);
      b.labels = at::full({b.shape.tokens}, -100, at::kInt);
      const at::Tensor rows = chosen.nonzero().flatten();
      b.labels.index_put_({rows}, at::randint(0, 300, {rows.size(0)}, at::kInt));
      if (its.names_rows) b.label_rows = rows.to(at::kInt);
      break;
    }
    case LossKind::token_classification:
      b.labels = at::randint(0, 3, {b.shape.tokens}, at::kInt);
      b.labels.masked_fill_(at::arange(b.shape.tokens).remainder(3).eq(1), -100);
      b.labels.narrow(0, 40, 7).fill_(-100);                    // the second sequence has none
      b.labels.narrow(0, b.shape.tokens - 20, 20).fill_(-100);  // nor has the tail
      break;
    case LossKind::question_answering:
      // Starts and ends out of range; the tail begins where the last sequence ends.
      b.labels = at::tensor({3, 9, 7, 2, -1, 63, 0, 1}, at::kInt).view({n, 2});
      break;
    case LossKind::prompt:
      b.labels = at::tensor({1, 0, 2, 1}, at::kInt).repeat({(n + 3) / 4}).narrow(0, 0, n);
      b.label_rows = b.cu_seqlens.narrow(0, 0, b.n_seqs).clone();
      b.label_rows.narrow(0, 2, 1).add_(17);
      b.input_ids.narrow(0, 3, 2).fill_(301);  // a soft token, twice
      break;
    case LossKind::causal_lm:
    case LossKind::preference:
    case LossKind::reward:
      ADD_FAILURE() << "no BERT has it: decoder_block_test.cpp";
      break;
  }
  b.loss_weight = 0.25f;
  b.end_loss_weight = 0.5f;
  b.label_smoothing = 0.1f;
  return batch;
}

constexpr LossKind kOneOfEachHead[] = {LossKind::cross_entropy, LossKind::masked_lm,
                                       LossKind::token_classification,
                                       LossKind::question_answering};
constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7, .micro_batch = 1};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const LossKind loss :
       {LossKind::cross_entropy, LossKind::multi_label, LossKind::regression, LossKind::masked_lm,
        LossKind::token_classification, LossKind::question_answering}) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      cases.push_back({loss, type});
  }
  cases.push_back({LossKind::masked_lm, DType::f32, 0.1f, true});
  cases.push_back({LossKind::masked_lm, DType::bf16, 0.0f, true});
  for (const WordTokens words : {WordTokens::first, WordTokens::mean, WordTokens::max})
    cases.push_back({LossKind::prompt, DType::f32, 0.1f, false, words});
  cases.push_back({LossKind::prompt, DType::bf16, 0.1f});
  cases.push_back({LossKind::prompt, DType::f32, 0.1f, true});
  return cases;
}

std::map<std::string, at::Tensor> gradients(test::ModelRunner& runner, const BatchTensors& batch) {
  runner.poison();
  runner.forward(kKey, batch);
  runner.backward(kKey, batch);
  std::map<std::string, at::Tensor> all = runner.hf_grads();
  for (const HfEntry& entry : runner.table().hf_names)
    if (!runner.table().param_of(entry).trainable) all.erase(entry.hf_name);
  return all;
}

TEST(Blocks, TakeExactlyTheDeclaredScratch) {
  for (const Case& its : all_cases()) {
    test::TestBatch batch = batch_of(its);
    // The most a language-model head can take: every token has a label and is named.
    if (its.loss == LossKind::masked_lm)
      batch.tensors.label_rows = at::arange(batch.tensors.shape.tokens, at::kInt);
    test::ModelRunner runner(table_of(its), its.loss, batch.tensors.shape);
    runner.randomise(1, 0.1f);
    gradients(runner, batch.tensors);
    for (size_t b = 0; b < runner.table().blocks.size(); b++) {
      const BlockTable& block = runner.table().blocks[b];
      // The classifier's declaration covers each loss; cross entropy takes the most.
      if (block.kind == BlockKind::head &&
          (its.loss == LossKind::multi_label || its.loss == LossKind::regression))
        continue;
      const ScratchNeed need = block.scratch(batch.tensors.shape);
      EXPECT_EQ(runner.forward_peak_bytes(static_cast<int>(b)), need.forward_bytes)
          << block.name << ", forward, " << name_of(its.type);
      EXPECT_EQ(runner.backward_peak_bytes(static_cast<int>(b)), need.backward_bytes)
          << block.name << ", backward, " << name_of(its.type);
    }
  }
}

TEST(Blocks, WriteEveryGradientAndNothingUnwrittenIsRead) {
  for (const Case& its : all_cases()) {
    const test::TestBatch batch = batch_of(its);
    test::ModelRunner runner(table_of(its), its.loss, batch.tensors.shape);
    runner.randomise(1, 0.1f);
    for (const auto& [name, grad] : gradients(runner, batch.tensors))
      EXPECT_TRUE(grad.isfinite().all().item<bool>()) << name << ", " << name_of(its.type);
  }
}

TEST(Blocks, GradientsFitTheLossWithDropout) {
  // Along a random direction the loss changes as the gradient says; a mask drawn again with another
  // key in the backward would be off by tens of percent.
  for (const LossKind loss : kOneOfEachHead) {
    const Case its = {loss};
    const test::TestBatch batch = batch_of(its);
    test::ModelRunner runner(table_of(its), loss, batch.tensors.shape);
    runner.randomise(1, 0.15f);
    gradients(runner, batch.tensors);
    for (size_t b = 0; b < runner.table().blocks.size(); b++) {
      const BlockTable& block = runner.table().blocks[b];
      double predicted = 0;
      std::vector<at::Tensor> directions;
      at::manual_seed(static_cast<uint64_t>(b));
      for (size_t i = 0; i < block.params.size(); i++) {
        at::Tensor grad = runner.grad(static_cast<int>(b), static_cast<int>(i)).clone();
        if (b == 0 && i == 0 && loss == LossKind::masked_lm)
          grad = runner.hf_grads().at("bert.embeddings.word_embeddings.weight");
        directions.push_back(grad.sign() * at::rand(grad.sizes()));
        predicted += (grad * directions[i]).sum().item<double>();
      }
      const auto loss_at = [&](double step) {
        for (size_t i = 0; i < directions.size(); i++)
          runner.param(static_cast<int>(b), static_cast<int>(i)).add_(directions[i], step);
        const double value = runner.forward(kKey, batch.tensors);
        for (size_t i = 0; i < directions.size(); i++)
          runner.param(static_cast<int>(b), static_cast<int>(i)).sub_(directions[i], step);
        return value;
      };
      const double step = 2e-3 / predicted;
      const double seen = (loss_at(step) - loss_at(-step)) / (2 * step);
      EXPECT_NEAR(seen / predicted, 1, 0.01) << block.name;
    }
  }
}

TEST(Blocks, DummyTailChangesNoGradient) {
  for (const Case& its : all_cases()) {
    const test::TestBatch first = batch_of(its);
    test::TestBatch second = batch_of(its);
    for (int64_t t = second.tensors.shape.tokens - 20; t < second.tensors.shape.tokens; t++)
      second.input_ids[t] = 1 + second.input_ids[t] % 200;
    test::ModelRunner runner(table_of(its), its.loss, first.tensors.shape);
    runner.randomise(1, 0.1f);
    const auto a = gradients(runner, first.tensors), b = gradients(runner, second.tensors);
    for (const auto& [name, grad] : a)
      EXPECT_TRUE(at::equal(grad, b.at(name))) << name << ", " << name_of(its.type);
  }
}

TEST(Blocks, SameBitsAgainAndElsewhere) {
  for (const Case& its : all_cases()) {
    const test::TestBatch batch = batch_of(its);
    test::ModelRunner one(table_of(its), its.loss, batch.tensors.shape);
    const test::Region between(123456);
    test::ModelRunner two(table_of(its), its.loss, batch.tensors.shape);
    one.randomise(1, 0.1f);
    two.randomise(1, 0.1f);
    const auto a = gradients(one, batch.tensors), again = gradients(one, batch.tensors),
               b = gradients(two, batch.tensors);
    for (const auto& [name, grad] : a) {
      EXPECT_TRUE(at::equal(grad, again.at(name))) << name;
      EXPECT_TRUE(at::equal(grad, b.at(name))) << name;
    }
  }
}

TEST(Blocks, SixteenBitsFollowFp32) {
  for (const LossKind loss : kOneOfEachHead) {
    const test::TestBatch batch = batch_of({loss});
    test::ModelRunner wide(table_of({loss}), loss, batch.tensors.shape);
    wide.randomise(1, 0.1f);
    const auto expected = gradients(wide, batch.tensors);
    for (const DType type : {DType::bf16, DType::f16}) {
      test::ModelRunner narrow(table_of({loss, type}), loss, batch.tensors.shape);
      narrow.randomise(1, 0.1f);
      const auto grads = gradients(narrow, batch.tensors);
      for (const char* name : {"bert.embeddings.word_embeddings.weight",
                               "bert.encoder.layer.0.attention.self.query.weight",
                               "bert.encoder.layer.1.output.dense.weight"}) {
        const double error = (grads.at(name) - expected.at(name)).norm().item<double>() /
                             expected.at(name).norm().item<double>();
        EXPECT_LT(error, type == DType::bf16 ? 0.06 : 0.008) << name;
      }
    }
  }
}

TEST(Blocks, LossScaleScalesGradientsAlone) {
  const Case its;
  test::TestBatch batch = batch_of(its);
  test::ModelRunner runner(table_of(its), its.loss, batch.tensors.shape);
  runner.randomise(1, 0.1f);
  const auto plain = gradients(runner, batch.tensors);
  const float loss = runner.forward(kKey, batch.tensors);
  batch.tensors.grad_scale = 1024;
  EXPECT_EQ(runner.forward(kKey, batch.tensors), loss);
  for (const auto& [name, grad] : gradients(runner, batch.tensors))
    EXPECT_TRUE(at::equal(grad, plain.at(name) * 1024)) << name;
}

TEST(Blocks, KeysDecideTheMasks) {
  const Case its;
  const test::TestBatch batch = batch_of(its);
  test::ModelRunner runner(table_of(its), its.loss, batch.tensors.shape);
  runner.randomise(1, 0.1f);
  const float loss = runner.forward(kKey, batch.tensors);
  EXPECT_EQ(runner.forward(kKey, batch.tensors), loss);
  for (int field = 0; field < 3; field++) {
    RandomKey other = kKey;
    other.step += field == 0;
    other.micro_batch += field == 1;
    other.seed += field == 2;
    EXPECT_NE(runner.forward(other, batch.tensors), loss) << field;
  }
  RandomKey evaluation = kKey;
  evaluation.training = false;
  Case without = its;
  without.dropout = 0;
  test::ModelRunner plain(table_of(without), its.loss, batch.tensors.shape);
  plain.randomise(1, 0.1f);
  EXPECT_EQ(runner.forward(evaluation, batch.tensors), plain.forward(kKey, batch.tensors));
}

TEST(Blocks, MicroBatchWithoutLabelItems) {
  for (const LossKind loss :
       {LossKind::masked_lm, LossKind::token_classification, LossKind::question_answering}) {
    const Case its = {loss, DType::f32, 0.1f, true};
    test::TestBatch batch = batch_of(its);
    if (loss == LossKind::masked_lm) batch.tensors.label_rows = at::empty({0}, at::kInt);
    batch.tensors.labels.fill_(loss == LossKind::question_answering ? 64 : -100);
    test::ModelRunner runner(table_of(its), its.loss, batch.tensors.shape);
    runner.randomise(1, 0.1f);
    EXPECT_EQ(runner.forward(kKey, batch.tensors), 0.0f);
    for (const auto& [name, grad] : gradients(runner, batch.tensors))
      EXPECT_TRUE(grad.eq(0).all().item<bool>()) << name;
  }
}

TEST(Blocks, MicroBatchOfTheTailAlone) {
  for (const LossKind loss : {LossKind::token_classification, LossKind::question_answering}) {
    const Case its = {loss};
    test::TestBatch batch({17, 3}, 2, 300, 4);
    batch.tensors.labels = loss == LossKind::question_answering
                               ? at::empty({0, 2}, at::kInt)
                               : at::full({batch.tensors.shape.tokens}, -100, at::kInt);
    test::ModelRunner runner(table_of(its), its.loss, batch.tensors.shape);
    runner.randomise(1, 0.1f);
    EXPECT_EQ(runner.forward(kKey, batch.tensors), 0.0f);
    for (const auto& [name, grad] : gradients(runner, batch.tensors))
      EXPECT_TRUE(grad.eq(0).all().item<bool>()) << name;
  }
}

/** One sequence's answer is a softmax over its own tokens: other sequences beside it change
 * nothing.
 */
TEST(Blocks, AnswersAreSoughtInTheirOwnSequence) {
  const Case its = {LossKind::question_answering, DType::f32, 0.0f};
  const test::TestBatch all = batch_of(its);
  test::ModelRunner together(table_of(its), its.loss, all.tensors.shape);
  together.randomise(1, 0.3f);
  at::Tensor logits = at::zeros({all.tensors.shape.tokens, 2});
  const double loss = together.forward(kKey, all.tensors, logits);
  double expected = 0;
  for (int64_t s = 0; s < all.tensors.n_seqs_real; s++) {
    const int64_t first = all.cu_seqlens[s], length = all.cu_seqlens[s + 1] - first;
    const at::Tensor mine = logits.narrow(0, first, length).to(at::kDouble).log_softmax(0);
    const auto item = [&](int which) {
      const int64_t place = std::max(0, all.tensors.labels[s][which].item<int>());
      return place < length ? -mine[place][which].item<double>() : 0.0;
    };
    expected += 0.5 * (0.25 * item(0) + 0.5 * item(1));
  }
  EXPECT_NEAR(loss / expected, 1, 1e-6);
}

TEST(Blocks, NamedRowsGiveTheGradientsOfAllRows) {
  const Case named = {LossKind::masked_lm, DType::f32, 0.1f, true}, all = {LossKind::masked_lm};
  const test::TestBatch batch = batch_of(named), whole = batch_of(all);
  test::ModelRunner runner(table_of(named), named.loss, batch.tensors.shape);
  runner.randomise(1, 0.1f);
  const auto a = gradients(runner, batch.tensors), b = gradients(runner, whole.tensors);
  for (const auto& [name, grad] : a) {
    EXPECT_LE((grad - b.at(name)).norm().item<double>(),
              2e-5 * b.at(name).norm().item<double>() + 1e-9)
        << name;
  }
}

TEST(RandomKeys, DifferInEveryField) {
  EXPECT_NE(kKey.of(0), kKey.of(1));
  RandomKey other = kKey;
  other.block = 1;
  EXPECT_NE(kKey.of(0), other.of(0));
}

TEST(ScratchDeathTest, PastTheCapacity) {
  test::Region region(1024);
  Scratch scratch(region.data(), 1024, at::kCPU);
  scratch.take({3}, at::kFloat);
  const int64_t mark = scratch.mark();
  EXPECT_EQ(scratch.take({128}, at::kFloat).data_ptr(), region.data() + 512);
  EXPECT_DEATH(scratch.take({1}, at::kFloat), "scratch of 1024");
  scratch.rewind(mark);
  scratch.take({1}, at::kFloat);
  EXPECT_EQ(scratch.peak_bytes(), 1024);
}

}  // namespace
}  // namespace ferry
