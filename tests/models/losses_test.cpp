// The heads' losses on the CPU and on a GPU against autograd in fp64 on the same numbers, and what
// they make of logits that are not finite.

#include "models/core/block.h"
#include "models/ops/cross_entropy/cross_entropy.h"
#include "models/ops/cross_entropy/logits_state.h"
#include "models/ops/label_loss/label_loss.h"
#include "models/ops/span_loss/span_loss.h"
#include "models/ops/vocabulary_loss/vocabulary_loss.h"
#include "tests/models/ops_case.h"

namespace ferry::ops {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/** The sum over rows with a label, on fp64 leaves. */
at::Tensor cross_entropy_of(const at::Tensor& logits64, const at::Tensor& labels, float smoothing) {
  return at::cross_entropy_loss(logits64, labels.to(at::kLong), {}, at::Reduction::Sum, -100,
                                smoothing);
}

struct Result {
  at::Tensor loss, d_logits;
};
/** The result for classes that come in pieces of these widths. */
Result in_pieces(const at::Tensor& logits,
                 const at::Tensor& labels,
                 const std::vector<int64_t>& widths,
                 float smoothing,
                 float weight,
                 float factor,
                 Scratch& scratch) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  std::vector<at::Tensor> parts;
  LogitsState state = LogitsState::take(rows, scratch);
  at::Tensor lse = at::full({rows}, NAN, logits.options()), loss = lse.new_full({}, NAN);
  int64_t first = 0;
  for (const int64_t n : widths) {
    parts.push_back(logits.narrow(1, first, n).clone(at::MemoryFormat::Contiguous));
    take_logits(parts.back(), first, labels, state);
    first += n;
  }
  cross_entropy_forward(state, labels, classes, smoothing, weight, lse, loss);
  first = 0;
  for (at::Tensor& part : parts) {
    cross_entropy_backward(part, first, labels, lse, classes, smoothing, factor);
    first += part.size(1);
  }
  return {loss, at::cat(parts, 1)};
}

TEST_P(OpsOnDevice, CrossEntropyInPieces) {
  const int64_t rows = 70, classes = 61;
  const at::Tensor logits = random({rows, classes}, 4);
  at::Tensor labels = at::randint(0, classes, {rows}, at::kInt);
  labels.narrow(0, 10, 30).fill_(-100);
  for (const float smoothing : {0.0f, 0.2f}) {
    const at::Tensor logits64 = leaf(logits);
    const at::Tensor expected = cross_entropy_of(logits64, labels, smoothing) * 0.125;
    (expected * 8).backward();
    const Result result =
        in_pieces(there(logits), there(labels), {20, 41}, smoothing, 0.125f, 1.0f, scratch());
    expect_close(result.loss, expected.detach(), "loss");
    expect_close(result.d_logits, logits64.grad(), "d_logits");
  }
}

TEST_P(OpsOnDevice, LabelCrossEntropy) {
  const int64_t rows = 70;
  for (const int64_t classes : {2, 5, 300}) {
    const at::Tensor logits = random({rows, classes}, 4);
    at::Tensor labels = at::randint(0, classes, {rows}, at::kInt);
    labels.narrow(0, 10, 30).fill_(-100);
    for (const float smoothing : {0.0f, 0.2f}) {
      const at::Tensor logits64 = leaf(logits);
      const at::Tensor expected = cross_entropy_of(logits64, labels, smoothing) * 0.125;
      (expected * 16).backward();
      const at::Tensor x = there(logits), y = there(labels);
      at::Tensor loss = unwritten({}), d = like(x);
      label_cross_entropy_forward(x, y, smoothing, 0.125f, loss, scratch());
      label_cross_entropy_backward(x, y, smoothing, 2.0f, d, scratch());
      expect_close(loss, expected.detach(), "loss");
      expect_close(d, logits64.grad(), "d_logits");
      EXPECT_TRUE(at::equal(x.cpu(), logits)) << "the logits are read alone";
      EXPECT_TRUE(d.narrow(0, 10, 30).eq(0).all().item<bool>()) << "no label, no gradient";
    }
  }
}

/** torch's own loss with weights of classes, whose mean is over the weights of the labels. */
TEST_P(OpsOnDevice, WeightedCrossEntropy) {
  const int64_t rows = 70, classes = 5;
  const at::Tensor logits = random({rows, classes}, 4);
  const at::Tensor weights = at::tensor({0.25f, 1.0f, 3.0f, 0.5f, 7.0f});
  at::Tensor labels = at::randint(0, classes, {rows}, at::kInt);
  const double sum = weights.index_select(0, labels).sum().item<double>();
  for (const float smoothing : {0.0f, 0.2f}) {
    const at::Tensor logits64 = leaf(logits);
    const at::Tensor expected =
        at::cross_entropy_loss(logits64, labels.to(at::kLong), weights.to(at::kDouble),
                               at::Reduction::Mean, -100, smoothing);
    (expected * 2).backward();
    const at::Tensor x = there(logits), y = there(labels), w = there(weights);
    at::Tensor loss = unwritten({}), d = like(x);
    weighted_cross_entropy_forward(x, y, w, smoothing, static_cast<float>(1 / sum), loss);
    weighted_cross_entropy_backward(x, y, w, smoothing, static_cast<float>(2 / sum), d);
    expect_close(loss, expected.detach(), "loss");
    expect_close(d, logits64.grad(), "d_logits");
  }
  labels.narrow(0, 10, 30).fill_(-100);
  at::Tensor d = like(there(logits));
  weighted_cross_entropy_backward(there(logits), there(labels), there(weights), 0.2f, 1.0f, d);
  EXPECT_TRUE(d.narrow(0, 10, 30).eq(0).all().item<bool>()) << "no label, no gradient";
}

/** As torch has it: a class of probability zero is none of the loss of other labels. */
TEST_P(OpsOnDevice, ALogitOfMinusInfinityIsAProbabilityOfZero) {
  const at::Tensor logits = at::tensor({1.0f, 2.0f, -kInf}).view({1, 3});
  const at::Tensor x = there(logits), y = there(at::tensor({1}, at::kInt));
  at::Tensor loss = unwritten({}), d = like(x);
  label_cross_entropy_forward(x, y, /*smoothing=*/0, 1.0f, loss, scratch());
  label_cross_entropy_backward(x, y, /*smoothing=*/0, 1.0f, d, scratch());
  EXPECT_NEAR(loss.item<double>(), 0.3132617, 1e-6);
  expect_close(d, at::tensor({0.2689414, -0.2689414, 0.0}, at::kDouble).view({1, 3}), "d_logits");
  // Smoothing asks some probability of every class.
  label_cross_entropy_forward(x, y, /*smoothing=*/0.1f, 1.0f, loss, scratch());
  EXPECT_EQ(loss.item<float>(), kInf);
  // So does the label's own class.
  label_cross_entropy_forward(x, there(at::tensor({2}, at::kInt)), 0, 1.0f, loss, scratch());
  EXPECT_EQ(loss.item<float>(), kInf);
}

TEST_P(OpsOnDevice, APieceOfMinusInfinitiesAddsNothing) {
  const int64_t rows = 9, width = 37;
  for (const int64_t empty : {0, 1, 2}) {
    const at::Tensor logits = random({rows, 3 * width}, 4);
    logits.narrow(1, empty * width, width).fill_(-kInf);
    at::Tensor labels = at::randint(0, width, {rows}, at::kInt) + (empty == 1 ? 2 : 1) * width;
    if (empty == 2) labels -= width;
    labels[4].fill_(-100);
    const at::Tensor logits64 = leaf(logits), expected = cross_entropy_of(logits64, labels, 0);
    expected.backward();
    const Result result =
        in_pieces(there(logits), there(labels), {width, width, width}, 0, 1.0f, 1.0f, scratch());
    expect_close(result.loss, expected.detach(), "loss");
    expect_close(result.d_logits, logits64.grad(), "d_logits");
  }
}

/** Loss scaling has to see them. */
TEST_P(OpsOnDevice, LogitsThatAreNotFiniteShowInTheLossAndTheGradient) {
  const std::vector<at::Tensor> cases = {
      at::tensor({1.0f, NAN, 2.0f, 3.0f}),    at::tensor({1.0f, kInf, 2.0f, 3.0f}),
      at::tensor({NAN, NAN, 2.0f, 3.0f}),     at::tensor({2.0f, 3.0f, NAN, NAN}),
      at::tensor({-kInf, NAN, 2.0f, 3.0f}),   at::tensor({-kInf, -kInf, NAN, 3.0f}),
      at::tensor({kInf, kInf, -kInf, -kInf}), at::tensor({NAN, NAN, -kInf, -kInf}),
      at::tensor({-kInf, -kInf, kInf, 3.0f}), at::tensor({-kInf, -kInf, -kInf, -kInf})};
  for (size_t i = 0; i < cases.size(); i++) {
    const at::Tensor logits = there(cases[i].view({1, 4})),
                     label = there(at::tensor({3}, at::kInt));
    const Result result = in_pieces(logits, label, {2, 2}, 0, 1.0f, 1.0f, scratch());
    EXPECT_FALSE(result.loss.isfinite().item<bool>()) << i;
    EXPECT_FALSE(result.d_logits.isfinite().all().item<bool>()) << i;
  }
}

TEST_P(OpsOnDevice, SpanLoss) {
  // One token, one dummy sequence; labels inside, below, past the end.
  test::TestBatch batch({40, 1, 70, 300, 9}, 1, 50, 3);
  batch.tensors.labels = at::tensor({39, 0, 0, 1, -5, 70, 299, 1000}, at::kInt).view({4, 2});
  batch.tensors.loss_weight = 0.25f;
  batch.tensors.end_loss_weight = 0.5f;
  batch.tensors.grad_scale = 8;
  const BatchTensors b = test::on_device(GetParam(), batch.tensors);
  const at::Tensor logits = random({2, b.shape.tokens}, 4), logits64 = leaf(logits);
  at::Tensor expected = at::zeros({}, at::kDouble);
  for (int64_t s = 0; s < b.n_seqs_real; s++) {
    const int64_t first = batch.cu_seqlens[s], length = batch.cu_seqlens[s + 1] - first;
    const at::Tensor labels = batch.tensors.labels[s].to(at::kLong).clamp(0, length);
    for (int which = 0; which < 2; which++)
      expected = expected + (which == 0 ? 0.125 : 0.25) *
                                at::cross_entropy_loss(
                                    logits64[which].narrow(0, first, length).unsqueeze(0),
                                    labels[which].unsqueeze(0), {}, at::Reduction::Sum, length);
  }
  (expected * 8).backward();
  const at::Tensor x = there(logits);
  at::Tensor lse = unwritten({4, 2}), loss = unwritten({}), d = like(x);
  span_loss_forward(x, b, lse, loss, scratch());
  span_loss_backward(x, b, lse, d);
  expect_close(loss, expected.detach(), "loss");
  expect_close(d, logits64.grad(), "d_logits");
}

TEST_P(OpsOnDevice, LabelLosses) {
  const at::Tensor logits = random({9, 4}, 3), targets = random({9, 4});
  for (const LossKind kind : {LossKind::multi_label, LossKind::regression}) {
    const at::Tensor y = kind == LossKind::multi_label ? targets.gt(0).to(at::kFloat) : targets;
    const at::Tensor logits64 = leaf(logits), y64 = y.to(at::kDouble);
    const at::Tensor expected = kind == LossKind::multi_label
                                    ? at::binary_cross_entropy_with_logits(logits64, y64)
                                    : at::mse_loss(logits64, y64);
    expected.backward();
    const at::Tensor x = there(logits);
    at::Tensor loss = unwritten({}), d = like(x);
    label_loss_forward(kind, x, there(y), 1.0f / 9, loss);
    label_loss_backward(kind, x, there(y), 1.0f / 9, d);
    expect_close(loss, expected.detach(), "loss");
    expect_close(d, logits64.grad(), "d_logits");
  }
}

constexpr int64_t kRows = 33, kVocab = 2 * kVocabChunk + 100;

/** Words of the first, the second and the last chunk, and rows without a label. */
at::Tensor words_to_predict() {
  at::Tensor labels = at::randint(0, kVocab, {kRows}, at::kInt);
  labels[0] = 0;
  labels[1] = kVocabChunk;
  labels[2] = kVocab - 1;
  labels[5] = -100;
  labels.narrow(0, 20, 4).fill_(-100);
  return labels;
}

TEST_P(OpsOnDevice, VocabularyLoss) {
  const at::Tensor t = random({kRows, W}), word = random({kVocab, W}, 0.3), bias = random({kVocab});
  const at::Tensor labels = words_to_predict();
  for (const float smoothing : {0.0f, 0.1f}) {
    const LogitsRule rule = {.factor = smoothing > 0 ? 0.3f : 1};
    const at::Tensor t64 = leaf(t), word64 = leaf(word), bias64 = leaf(bias);
    const at::Tensor logits64 = at::addmm(bias64, t64, word64.t()) * rule.factor;
    const at::Tensor expected = cross_entropy_of(logits64, labels, smoothing);
    expected.backward();
    for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
      const double bar = type == at::kFloat ? 2e-6 : type == at::kHalf ? 4e-3 : 2e-2;
      const at::Tensor x = there(t.to(type)), e = there(word.to(type)), b = there(bias.to(type)),
                       y = there(labels);
      at::Tensor lse = unwritten({kRows}), loss = unwritten({}),
                 logits = unwritten({kRows, kVocab});
      at::Tensor dt = like(x), de = like(e), db = like(b);
      vocabulary_loss_forward(x, {.word = e, .bias = b, .vocab = e.size(0), .rule = rule}, y,
                              smoothing, 1.0f, lse, loss, logits, scratch());
      vocabulary_loss_backward(x, {.word = e, .bias = b, .vocab = e.size(0), .rule = rule}, y, lse,
                               smoothing, 1.0f, dt, de, db, scratch());
      expect_close(loss, expected.detach(), "loss", bar);
      expect_close(logits, logits64.detach(), "logits", bar);
      expect_close(dt, t64.grad(), "dt", bar);
      expect_close(de, word64.grad(), "dword", bar);
      expect_close(db, bias64.grad(), "dbias", bar);
      EXPECT_TRUE(dt[5].eq(0).all().item<bool>()) << "no label, no gradient";
    }
  }
}

TEST_P(OpsOnDevice, VocabularyLossWithoutABiasIsThatWithZeros) {
  const at::Tensor labels = there(words_to_predict());
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const double bar = type == at::kFloat ? 2e-6 : type == at::kHalf ? 4e-3 : 2e-2;
    const at::Tensor x = there(random({kRows, W}).to(type)),
                     e = there(random({kVocab, W}, 0.3).to(type)),
                     zeros = at::zeros({kVocab}, x.options());
    at::Tensor lse = unwritten({kRows}), loss = unwritten({}), dt = like(x), de = like(e),
               db = like(zeros), other_loss = unwritten({}), other_dt = like(x), other_de = like(e),
               none;
    const at::Tensor no_bias;
    const WordRange with_zeros = {.word = e, .bias = zeros, .vocab = e.size(0)},
                    without = {.word = e, .bias = no_bias, .vocab = e.size(0)};
    vocabulary_loss_forward(x, with_zeros, labels, 0.1f, 1.0f, lse, loss, none, scratch());
    vocabulary_loss_backward(x, with_zeros, labels, lse, 0.1f, 1.0f, dt, de, db, scratch());
    vocabulary_loss_forward(x, without, labels, 0.1f, 1.0f, lse, other_loss, none, scratch());
    vocabulary_loss_backward(x, without, labels, lse, 0.1f, 1.0f, other_dt, other_de, {},
                             scratch());
    const auto wide = [](const at::Tensor& values) { return values.to(at::kCPU, at::kDouble); };
    expect_close(other_loss, wide(loss), "loss without bias", bar);
    expect_close(other_dt, wide(dt), "dt without bias", bar);
    expect_close(other_de, wide(de), "dword without bias", bar);
  }
}

/** A bias of -inf rules words out, here a whole chunk of them and some of the next one. */
TEST_P(OpsOnDevice, VocabularyLossOfFewerWords) {
  const int64_t n_out = kVocabChunk + 10;
  const at::Tensor t = random({kRows, W}), word = random({kVocab, W}, 0.3), bias = random({kVocab});
  bias.narrow(0, 0, n_out).fill_(-kInf);
  const at::Tensor labels = at::randint(n_out, kVocab, {kRows}, at::kInt);
  const at::Tensor t64 = leaf(t), word64 = leaf(word), bias64 = leaf(bias);
  const at::Tensor expected =
      cross_entropy_of(at::addmm(bias64, t64, word64.t()), labels, /*smoothing=*/0);
  expected.backward();
  const at::Tensor x = there(t), e = there(word), b = there(bias), y = there(labels);
  at::Tensor lse = unwritten({kRows}), loss = unwritten({}), none;
  at::Tensor dt = like(x), de = like(e), db = like(b);
  const WordRange words = {.word = e, .bias = b, .vocab = e.size(0)};
  vocabulary_loss_forward(x, words, y, 0, 1.0f, lse, loss, none, scratch());
  vocabulary_loss_backward(x, words, y, lse, 0, 1.0f, dt, de, db, scratch());
  expect_close(loss, expected.detach(), "loss");
  expect_close(dt, t64.grad(), "dt");
  expect_close(de, word64.grad(), "dword");
  expect_close(db, bias64.grad(), "dbias");
}

}  // namespace
}  // namespace ferry::ops
