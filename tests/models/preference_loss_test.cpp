// The loss of pairs of answers: its derivatives beside differences of its values, and what it does
// to a vocabulary's logits, on the CPU and on a GPU, beside fp64. The formulas themselves are held
// against TRL's in tests/parity/preferences.py.

#include "models/ops/preference/preference_loss.h"

#include <string>

#include "models/core/block.h"
#include "models/ops/cross_entropy/logits_state.h"
#include "models/ops/preference/pair_loss.h"
#include "models/ops/vocabulary_loss/vocabulary_loss.h"
#include "tests/models/ops_case.h"

namespace ferry::ops {
namespace {

PreferenceRule rule_of(PreferenceKind kind) {
  const bool smooths = kind == PreferenceKind::sigmoid || kind == PreferenceKind::robust;
  return {.kind = kind, .beta = 0.3f, .margin = 0.4f, .label_smoothing = smooths ? 0.1f : 0.0f};
}

TEST(PairLoss, HasTheDerivativesOfItsValues) {
  constexpr double kStep = 1e-5;
  for (const auto& [kind, name] : kPreferenceKinds) {
    const PreferenceRule rule = rule_of(kind);
    const AnswerSums chosen = {.log_p = -7, .n_tokens = 5, .reference = -6.5},
                     rejected = {.log_p = -9, .n_tokens = 3, .reference = -9.25};
    const auto value = [&](double c, double r) {
      AnswerSums moved_c = chosen, moved_r = rejected;
      moved_c.log_p += c;
      moved_r.log_p += r;
      return pair_loss(rule, moved_c, moved_r).value;
    };
    const PairLoss loss = pair_loss(rule, chosen, rejected);
    EXPECT_NEAR(loss.by_chosen, (value(kStep, 0) - value(-kStep, 0)) / (2 * kStep), 1e-8) << name;
    EXPECT_NEAR(loss.by_rejected, (value(0, kStep) - value(0, -kStep)) / (2 * kStep), 1e-8) << name;
    EXPECT_LE(loss.by_chosen, kind == PreferenceKind::apo_down ? 1.0 : 0.0) << name;
  }
}

/** Far from the middle no exponential overflows. */
TEST(PairLoss, IsFiniteForAnswersThatAreFarApart) {
  for (const auto& [kind, name] : kPreferenceKinds)
    for (const double far : {-5000.0, -1e-12}) {
      const PairLoss loss = pair_loss(rule_of(kind), {.log_p = far, .n_tokens = 2, .reference = -3},
                                      {.log_p = -5000.0 - far, .n_tokens = 2, .reference = -3});
      EXPECT_TRUE(std::isfinite(loss.value) && std::isfinite(loss.by_chosen) &&
                  std::isfinite(loss.by_rejected))
          << name << ' ' << far;
    }
}

constexpr int64_t kVocab = 4096 + 70, kW = 16;

/** Two pairs, then a tail; prompts of two tokens, which chosen answers teach with orpo. */
struct Pairs {
  std::vector<int32_t> cu = {0, 9, 16, 27, 33};
  int64_t n_tokens = 40;
  at::Tensor labels, inputs;

  explicit Pairs(bool learns_prompts) {
    labels = at::randint(0, kVocab, {n_tokens}, at::kInt);
    int32_t* label = labels.data_ptr<int32_t>();
    inputs = at::zeros({4, kPreferenceInputs});
    for (size_t s = 0; s < 4; ++s) {
      label[cu[s + 1] - 1] = -100;
      if (!learns_prompts || s % 2 == 1) label[cu[s]] = -100;
      inputs[static_cast<int64_t>(s)][0] = -20.0 - static_cast<double>(s);
      inputs[static_cast<int64_t>(s)][1] = 1;
    }
    for (int64_t i = cu[4]; i < n_tokens; ++i)
      label[i] = -100;
  }
};

/** Answers to other prompts are a measure, from which nothing is learnt. */
TEST_P(OpsOnDevice, SingleAnswersWeighTheirTokensByKto) {
  PreferenceRule rule = {.kind = PreferenceKind::kto, .beta = 0.3f};
  rule.bad_weight = 0.75f;
  const Pairs pairs(/*learns_prompts=*/false);
  const int64_t n = pairs.n_tokens;
  const at::Tensor log_p = random({n}).abs().neg(), zeros = at::zeros({n});
  pairs.inputs[0][2] = 1;  // the second answer is bad
  pairs.inputs[1][0] = -4;
  pairs.inputs[3][0] = -9;
  double sums[4];
  for (size_t s = 0; s < 4; ++s)
    sums[s] = log_p.slice(0, pairs.cu[s] + 1, pairs.cu[s + 1] - 1).sum().item<double>();
  const double divergence = std::max(0.0, ((sums[1] + 4) + (sums[3] + 9)) / 2);
  at::Tensor expected = at::zeros({n}, at::kDouble);
  double value = 0;
  for (const size_t s : {size_t{0}, size_t{2}}) {
    const double gained = sums[s] - pairs.inputs[static_cast<int64_t>(s)][0].item<double>();
    const double z = 0.3f * (s == 0 ? gained - divergence : divergence - gained);
    const double share = 1 / (1 + std::exp(-z)), weight = s == 0 ? 1 : 0.75;
    value += 0.5 * weight * (1 - share);
    const double slope = (s == 0 ? -1 : 1) * weight * 0.3f * share * (1 - share);
    expected.slice(0, pairs.cu[s] + 1, pairs.cu[s + 1] - 1).fill_(-0.5 * slope);
  }
  BatchTensors batch;
  batch.n_seqs_real = 4;
  batch.labels = there(pairs.labels);
  batch.cu_seqlens = there(at::tensor(pairs.cu, at::kInt));
  batch.loss_weight = 0.5f;
  batch.preferences = {.rule = &rule,
                       .inputs = there(pairs.inputs),
                       .sums = unwritten({4, kPreferenceSums}),
                       .token_weights = unwritten({n})};
  LogitsState state = LogitsState::take(n, scratch());
  state.label_logit.copy_(log_p);
  at::Tensor loss = unwritten({});
  weigh_pairs(batch, state, there(zeros), kVocab, loss);
  EXPECT_NEAR(loss.cpu().item<double>(), value, 1e-6);
  expect_close(batch.preferences.token_weights, expected, "weights", 1e-5);
}

TEST_P(OpsOnDevice, PairsOfAnswersWeighTheirTokens) {
  constexpr float kPair = 0.5f, kToken = 0.05f, kScale = 4;
  for (const auto& [kind, name] : kPreferenceKinds) {
    SCOPED_TRACE(std::string(name));
    PreferenceRule rule = rule_of(kind);
    rule.likelihood_weight = kind == PreferenceKind::orpo ? 1 : 0;
    const Pairs pairs(learns_prompts(kind));
    const at::Tensor t = random({pairs.n_tokens, kW}), word = random({kVocab, kW}, 0.3);
    const at::Tensor no_bias;

    // In fp64: the sums, the loss, and the gradient by the weights that follow from the sums.
    const at::Tensor t64 = leaf(t), word64 = leaf(word);
    const at::Tensor log_p = at::log_softmax(t64.matmul(word64.t()), 1)
                                 .gather(1, pairs.labels.clamp_min(0).to(at::kLong).unsqueeze(1))
                                 .squeeze(1);
    at::Tensor weights = at::zeros({pairs.n_tokens}, at::kDouble);
    double expected = 0;
    for (size_t s = 0; s < 4; s += 2) {
      AnswerSums sums[2];
      for (size_t half = 0; half < 2; ++half) {
        const int64_t begin = pairs.cu[s + half], end = pairs.cu[s + half + 1];
        sums[half] = {.log_p = log_p.slice(0, begin + 1, end - 1).sum().item<double>(),
                      .n_tokens = static_cast<double>(end - begin - 2),
                      .reference = pairs.inputs[static_cast<int64_t>(s + half)][0].item<double>()};
      }
      const PairLoss loss = pair_loss(rule, sums[0], sums[1]);
      expected += kPair * loss.value;
      weights.slice(0, pairs.cu[s] + 1, pairs.cu[s + 1] - 1).sub_(kPair * loss.by_chosen);
      weights.slice(0, pairs.cu[s + 1] + 1, pairs.cu[s + 2] - 1).sub_(kPair * loss.by_rejected);
      if (rule.likelihood_weight > 0) {
        weights.slice(0, pairs.cu[s], pairs.cu[s + 1] - 1).add_(kToken);
        expected -= kToken * log_p.slice(0, pairs.cu[s], pairs.cu[s + 1] - 1).sum().item<double>();
      }
    }
    (log_p * weights).sum().mul(-kScale).backward();

    BatchTensors batch;
    batch.n_seqs_real = 4;
    batch.labels = there(pairs.labels);
    batch.cu_seqlens = there(at::tensor(pairs.cu, at::kInt));
    batch.loss_weight = kPair;
    batch.end_loss_weight = kToken;
    batch.preferences = {.rule = &rule,
                         .inputs = there(pairs.inputs),
                         .sums = unwritten({4, kPreferenceSums}),
                         .token_weights = unwritten({pairs.n_tokens})};
    const at::Tensor x = there(t), e = there(word);
    const WordRange words = {.word = e, .bias = no_bias, .vocab = kVocab};
    at::Tensor lse = unwritten({pairs.n_tokens}), loss = unwritten({}), none;
    at::Tensor dt = like(x), de = like(e);
    vocabulary_loss_forward(x, words, batch.labels, 0, kPair, lse, loss, none, scratch(), nullptr,
                            [&](const LogitsState& state, const at::Tensor& of_rows) {
                              weigh_pairs(batch, state, of_rows, kVocab, loss);
                            });
    vocabulary_loss_backward(x, words, batch.labels, lse, 0, kScale, dt, de, {}, scratch(), nullptr,
                             &batch.preferences.token_weights);
    EXPECT_NEAR(loss.cpu().item<double>(), expected, 1e-5 * std::max(1.0, std::abs(expected)));
    expect_close(batch.preferences.token_weights, weights, "weights", 1e-5);
    expect_close(dt, t64.grad(), "dt", 1e-5);
    expect_close(de, word64.grad(), "dword", 1e-5);
  }
}

}  // namespace
}  // namespace ferry::ops
