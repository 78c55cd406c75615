// Several texts in a sample: their loss and gradients are those of the texts by themselves. The
// kernels in fp32, by the rule of tests/parity; the programs that they run interpreted in fp64, to
// 1e-9. Whatever reached from one text into its neighbour would show.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "models/bert/bert_table.h"
#include "models/decoder/decoder_table.h"
#include "tests/models/program_reference.h"
#include "tests/models/small_families.h"

namespace ferry {
namespace {

constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7};

using test::ProgramReference;
using test::TestBatch;

constexpr int64_t kVocab = test::SmallModel::kVocab;

struct Case {
  std::string name;
  ModelTable table;
  LossKind loss = LossKind::causal_lm;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const test::SmallFamily family : test::kSmallFamilies)
    all.push_back({name_of(family), small_table(test::small_model(family))});
  DecoderConfig decoder = {.family = DecoderFamily::llama,
                           .vocab_size = kVocab,
                           .hidden_size = 48,
                           .num_hidden_layers = 2,
                           .num_attention_heads = 6,
                           .num_key_value_heads = 2,
                           .intermediate_size = 80,
                           .max_position_embeddings = 64,
                           .norm_eps = 1e-5f,
                           .rope_theta = 500};
  all.push_back({"llama", make_decoder_table(decoder, {.compute = DType::f32})});
  decoder.family = DecoderFamily::gpt2;
  decoder.num_key_value_heads = 6;
  decoder.tie_word_embeddings = true;
  all.push_back({"gpt2", make_decoder_table(decoder, {.compute = DType::f32})});
  BertConfig bert;
  bert.vocab_size = kVocab;
  bert.hidden_size = 48;
  bert.num_hidden_layers = 2;
  bert.num_attention_heads = 4;
  bert.intermediate_size = 80;
  bert.max_position_embeddings = 64;
  TableOptions options;
  options.head = HeadKind::masked_lm;
  options.hidden_dropout = options.attention_dropout = 0;
  all.push_back({"bert, masked", make_bert_table(bert, options), LossKind::masked_lm});
  return all;
}

/** The next token's label, or of a masked model some tokens' own, by the whole batch's loss. */
void set_labels(TestBatch& batch, LossKind loss, int64_t n_labels) {
  BatchTensors& b = batch.tensors;
  b.labels = at::full({b.shape.tokens}, -100, at::kInt);
  b.loss_weight = 1.0f / static_cast<float>(n_labels);
  for (int64_t s = 0; s < b.n_seqs_real; ++s) {
    const int64_t begin = batch.cu_seqlens[static_cast<size_t>(s)],
                  n = batch.cu_seqlens[static_cast<size_t>(s) + 1] - begin;
    if (loss == LossKind::causal_lm)
      b.labels.narrow(0, begin, n - 1).copy_(b.input_ids.narrow(0, begin + 1, n - 1));
    for (int64_t i = 1; loss == LossKind::masked_lm && i < n; i += 3)
      b.labels[begin + i].copy_(b.input_ids[begin + i]);
  }
  if (loss == LossKind::masked_lm) b.label_rows = b.labels.ge(0).nonzero().flatten().to(at::kInt);
}

/** One text of a batch in a batch of its own. */
std::unique_ptr<TestBatch> alone(const TestBatch& all,
                                 size_t sequence,
                                 LossKind loss,
                                 int64_t n_labels) {
  const int64_t begin = all.cu_seqlens[sequence], n = all.cu_seqlens[sequence + 1] - begin;
  auto one = std::make_unique<TestBatch>(std::vector<int64_t>{n}, 0, kVocab, 1);
  const auto copy = [&](at::Tensor to, const at::Tensor& from) {
    to.copy_(from.narrow(0, begin, n));
  };
  copy(one->tensors.input_ids, all.tensors.input_ids);
  copy(one->tensors.type_ids, all.tensors.type_ids);
  copy(one->tensors.position_ids, all.tensors.position_ids);
  set_labels(*one, loss, n_labels);
  return one;
}

double norm_of(const at::Tensor& x) {
  return x.to(at::kDouble).norm().item<double>();
}

/** Each gradient to `bar` of its norm, or of a thousandth of the median norm where it is less: the
 * rule of tests/parity/compare.py. */
template <typename Key>
void expect_near(const std::map<Key, at::Tensor>& packed,
                 const std::map<Key, at::Tensor>& unpacked,
                 double bar) {
  std::vector<double> norms;
  for (const auto& [key, grad] : unpacked)
    norms.push_back(norm_of(grad));
  std::ranges::sort(norms);
  const double median = norms[norms.size() / 2];
  ASSERT_EQ(packed.size(), unpacked.size());
  for (const auto& [key, grad] : packed)
    EXPECT_LE(norm_of(grad.to(at::kDouble) - unpacked.at(key)),
              bar * std::max(norm_of(unpacked.at(key)), 1e-3 * median))
        << ::testing::PrintToString(key);
}

/** Short, long and single-token texts beside each other. */
const std::vector<int64_t> kLengths = {5, 40, 1, 2, 64, 17, 33, 3};

struct Packed {
  TestBatch together{kLengths, 0, kVocab, 4};
  std::vector<std::unique_ptr<TestBatch>> apart;

  explicit Packed(LossKind loss) {
    set_labels(together, loss, 1);
    const int64_t n_labels = together.tensors.labels.ge(0).sum().item<int64_t>();
    set_labels(together, loss, n_labels);
    for (size_t s = 0; s < kLengths.size(); ++s)
      apart.push_back(alone(together, s, loss, n_labels));
    // A masked text of one token has nothing to guess.
    std::erase_if(apart, [](const auto& one) {
      return one->tensors.labels.lt(0).all().template item<bool>();
    });
  }
};

TEST(Packing, LossAndGradientsInFp64) {
  for (const Case& its : cases()) {
    SCOPED_TRACE(its.name);
    Packed texts(its.loss);
    test::ModelRunner runner(its.table, its.loss, texts.together.tensors.shape);
    runner.randomise(1, 0.2f);
    ProgramReference packed(runner), unpacked(runner);
    const at::Tensor together = packed.loss(texts.together);
    together.backward();
    double apart = 0;
    for (const auto& one : texts.apart) {
      const at::Tensor loss = unpacked.loss(*one);
      loss.backward();
      apart += loss.item<double>();
    }
    EXPECT_NEAR(together.item<double>(), apart, 1e-9 * apart);
    expect_near(packed.grads(), unpacked.grads(), 1e-9);
  }
}

TEST(Packing, LossAndGradientsInFp32) {
  for (const Case& its : cases()) {
    SCOPED_TRACE(its.name);
    Packed texts(its.loss);
    const auto run = [&](const TestBatch& batch, double& loss) {
      test::ModelRunner runner(its.table, its.loss, batch.tensors.shape);
      runner.randomise(1, 0.2f);
      loss += static_cast<double>(runner.forward(kKey, batch.tensors));
      runner.backward(kKey, batch.tensors);
      return runner.hf_grads();
    };
    double together = 0, apart = 0;
    const auto packed = run(texts.together, together);
    std::map<std::string, at::Tensor> unpacked;
    for (const auto& one : texts.apart)
      for (const auto& [name, grad] : run(*one, apart)) {
        at::Tensor& sum = unpacked[name];
        sum = sum.defined() ? sum + grad.to(at::kDouble) : grad.to(at::kDouble);
      }
    EXPECT_NEAR(together, apart, 1e-5 * apart);
    expect_near(packed, unpacked, 1e-5);
  }
}

/** The programs in fp64 are what the kernels compute in fp32: else the first test would say nothing
 * of them. */
TEST(Packing, KernelsFollowThePrograms) {
  for (const Case& its : cases()) {
    SCOPED_TRACE(its.name);
    Packed texts(its.loss);
    test::ModelRunner runner(its.table, its.loss, texts.together.tensors.shape);
    runner.randomise(1, 0.2f);
    ProgramReference reference(runner);
    const at::Tensor expected = reference.loss(texts.together);
    expected.backward();
    EXPECT_NEAR(static_cast<double>(runner.forward(kKey, texts.together.tensors)),
                expected.item<double>(), 1e-5 * expected.item<double>());
    runner.backward(kKey, texts.together.tensors);
    for (const auto& [id, exact] : reference.grads()) {
      const bool is_lent = std::ranges::any_of(its.table.blocks, [&, id = id](const BlockTable& b) {
        return std::ranges::any_of(b.borrowed, [&](const BorrowedParam& from) {
          return from.block == id.first && from.param == id.second;
        });
      });
      if (is_lent) continue;  // the borrower's part lies elsewhere
      EXPECT_LE(norm_of(runner.grad(id.first, id.second).to(at::kDouble) - exact),
                2e-5 * std::max(norm_of(exact), 1e-4))
          << its.table.blocks[id.first].name << " "
          << its.table.blocks[id.first].params[id.second].name;
    }
  }
}

}  // namespace
}  // namespace ferry
