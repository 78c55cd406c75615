// The attributes of operations in small models of the families that need them: loss and gradients
// against the same model written with autograd in fp64 from Hugging Face's formulas, on each
// device; memory exactly as declared; what is made again has the same bits.

#include "tests/models/small_families.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/model_runner.h"
#include "tests/models/ops_case.h"

namespace ferry {
namespace {

using test::SmallFamily;
using test::SmallModel;

constexpr int64_t kWidth = SmallModel::kWidth;
constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7, .micro_batch = 1};

/** Ragged sequences and a dummy tail; each token's label is the next one of its sequence. */
test::TestBatch batch_of() {
  test::TestBatch batch({40, 7, 64, 1, 20}, 1, SmallModel::kVocab, 4);
  batch.label_next_tokens();
  batch.tensors.loss_weight = 1.0f / 108;
  return batch;
}

std::map<std::string, at::Tensor> gradients(test::ModelRunner& runner, const BatchTensors& batch) {
  runner.poison();
  runner.forward(kKey, batch);
  runner.backward(kKey, batch);
  return runner.hf_grads();
}

/** The model on fp64 leaves, one sequence after the other. */
class Reference {
 public:
  Reference(const SmallModel& its, const std::map<std::string, at::Tensor>& params) : its_(its) {
    for (const auto& [name, value] : params)
      params_[name] = value.to(at::kCPU, at::kDouble).clone().requires_grad_();
  }

  at::Tensor loss(const test::TestBatch& batch) {
    at::Tensor sum = at::zeros({}, at::kDouble);
    for (int64_t s = 0; s < batch.tensors.n_seqs_real; s++) {
      const int64_t begin = batch.cu_seqlens[s], n = batch.cu_seqlens[s + 1] - begin;
      if (n < 2) continue;
      const at::Tensor ids = batch.tensors.input_ids.narrow(0, begin, n).to(at::kLong);
      sum = sum + at::cross_entropy_loss(logits_of(ids).narrow(0, 0, n - 1),
                                         ids.narrow(0, 1, n - 1), {}, at::Reduction::Sum);
    }
    return sum * static_cast<double>(batch.tensors.loss_weight);
  }
  at::Tensor logits_of(const at::Tensor& ids) {
    at::Tensor x = p("word").index_select(0, ids);
    if (its_.family == SmallFamily::gemma2 || its_.family == SmallFamily::granite)
      x = x * SmallModel::kWordScale;
    if (its_.family == SmallFamily::opt350) {
      x = x.matmul(p("project_in").t()) + p("position").narrow(0, SmallModel::kOffset, ids.size(0));
    }
    for (int i = 0; i < 2; i++)
      x = layer(x, i);
    if (its_.family == SmallFamily::gptj) return at::addmm(p("lm_head.bias"), x, p("lm_head").t());
    if (its_.family == SmallFamily::opt350) x = x.matmul(p("project_out").t());
    at::Tensor logits = x.matmul(p("word").t());
    if (its_.family == SmallFamily::granite) logits = logits * SmallModel::kLogitFactor;
    if (its_.family != SmallFamily::gemma2) return logits;
    return at::tanh(logits / SmallModel::kLogitCap) * SmallModel::kLogitCap;
  }
  std::map<std::string, at::Tensor> grads() {
    std::map<std::string, at::Tensor> result;
    for (const auto& [name, value] : params_)
      result[name] = value.grad();
    return result;
  }

 private:
  at::Tensor& p(const std::string& name) { return params_.at(name); }
  at::Tensor rms(const at::Tensor& x, const std::string& name, double offset = 0) {
    return x * at::rsqrt((x * x).mean(-1, true) + 1e-5) * (p(name) + offset);
  }
  at::Tensor layer_norm(const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {kWidth}, p(name + ".weight"), p(name + ".bias"), 1e-5);
  }
  at::Tensor linear(const at::Tensor& x, const std::string& name) {
    const at::Tensor y = x.matmul(p(name + ".weight").t());
    return params_.contains(name + ".bias") ? y + p(name + ".bias") : y;
  }
  /** (H, n, d), the first columns of each head turned. */
  at::Tensor turned(const at::Tensor& heads, int64_t width, bool interleaved) const {
    const at::Tensor frequency = at::pow(
        SmallModel::kTheta, at::arange(0, width, 2, at::kDouble) / static_cast<double>(-width));
    const at::Tensor angle = at::arange(heads.size(1), at::kDouble).unsqueeze(1) * frequency;
    const at::Tensor x = heads.narrow(2, 0, width);
    const at::Tensor pairs = interleaved
                                 ? x.reshape({x.size(0), x.size(1), width / 2, 2})
                                 : x.reshape({x.size(0), x.size(1), 2, width / 2}).transpose(2, 3);
    const at::Tensor a = pairs.select(3, 0), b = pairs.select(3, 1);
    const at::Tensor both =
        at::stack({a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()}, 3);
    const at::Tensor flat = (interleaved ? both : both.transpose(2, 3)).flatten(2);
    return at::cat({flat, heads.narrow(2, width, heads.size(2) - width)}, 2);
  }
  /** The context of a layer's normed input. */
  at::Tensor attend(const at::Tensor& x, int index, const std::string& name) {
    const auto [H, kv, d] = its_.heads;
    const int64_t n = x.size(0);
    const at::Tensor qkv = linear(x, name + "qkv");
    const auto heads = [&, d = d](int64_t first, int64_t count) {
      return qkv.narrow(1, first * d, count * d).view({n, count, d}).transpose(0, 1);
    };
    at::Tensor q = heads(0, H), k = heads(H, kv);
    const at::Tensor v = heads(H + kv, kv).repeat_interleave(H / kv, 0);
    if (its_.family == SmallFamily::qwen3 || its_.family == SmallFamily::granite) {
      q = rms(q, name + "q_norm");
      k = rms(k, name + "k_norm");
    }
    if (its_.family != SmallFamily::opt350) {
      const bool is_part = its_.family == SmallFamily::neox || its_.family == SmallFamily::gptj;
      const int64_t width = is_part ? SmallModel::kRotated : d;
      q = turned(q, width, its_.family == SmallFamily::gptj);
      k = turned(k, width, its_.family == SmallFamily::gptj);
    }
    const bool is_gemma = its_.family == SmallFamily::gemma2;
    at::Tensor scores = q.matmul(k.repeat_interleave(H / kv, 0).transpose(1, 2)) *
                        (is_gemma ? SmallModel::kScale : 1 / std::sqrt(static_cast<double>(d)));
    if (is_gemma) scores = at::tanh(scores / SmallModel::kScoreCap) * SmallModel::kScoreCap;
    const at::Tensor all = at::ones({n, n}, at::kBool);
    scores = scores.masked_fill(all.triu(1), -INFINITY);
    if (is_gemma && index == 0)
      scores = scores.masked_fill(all.tril(-SmallModel::kWindow), -INFINITY);
    return at::softmax(scores, -1).matmul(v).transpose(0, 1).reshape({n, H * d});
  }
  at::Tensor gated(const at::Tensor& x, const std::string& name, Activation kind) {
    const at::Tensor both = linear(x, name + "up");
    const int64_t F = SmallModel::kInner;
    return linear(ops::activation_of(kind, both.narrow(1, 0, F)) * both.narrow(1, F, F),
                  name + "down");
  }
  at::Tensor fed(const at::Tensor& x, const std::string& name, Activation kind) {
    return linear(ops::activation_of(kind, linear(x, name + "up")), name + "down");
  }
  at::Tensor layer(const at::Tensor& x, int index) {
    const std::string l = "layer." + std::to_string(index) + ".";
    switch (its_.family) {
      case SmallFamily::neox:
        return x + linear(attend(layer_norm(x, l + "norm1"), index, l), l + "out") +
               fed(layer_norm(x, l + "norm2"), l, Activation::gelu);
      case SmallFamily::gptj: {
        const at::Tensor normed = layer_norm(x, l + "norm1");
        return x + linear(attend(normed, index, l), l + "out") +
               fed(normed, l, Activation::gelu_tanh);
      }
      case SmallFamily::gemma2: {
        const at::Tensor attended =
            linear(attend(rms(x, l + "before_attention", 1), index, l), l + "out");
        const at::Tensor sum = x + rms(attended, l + "after_attention", 1);
        return sum + rms(gated(rms(sum, l + "before_mlp", 1), l, Activation::gelu_tanh),
                         l + "after_mlp", 1);
      }
      case SmallFamily::qwen3:
      case SmallFamily::granite: {
        const float factor = its_.family == SmallFamily::granite ? SmallModel::kBranchFactor : 1;
        const at::Tensor sum =
            x + factor * linear(attend(rms(x, l + "norm1"), index, l), l + "out");
        return sum + factor * gated(rms(sum, l + "norm2"), l, Activation::silu);
      }
      case SmallFamily::opt350: {
        const at::Tensor attended =
            layer_norm(x + linear(attend(x, index, l), l + "out"), l + "norm1");
        return layer_norm(attended + fed(attended, l, Activation::relu), l + "norm2");
      }
    }
    return {};
  }

  SmallModel its_;
  std::map<std::string, at::Tensor> params_;
};

class SmallFamilies : public ::testing::TestWithParam<at::DeviceType> {
 protected:
  void SetUp() override {
    if (GetParam() == at::kCUDA && !at::hasCUDA()) GTEST_SKIP() << "no CUDA GPU here";
  }
  static AttentionBackend attention() {
    return GetParam() == at::kCUDA ? AttentionBackend::memory_efficient
                                   : AttentionBackend::cpu_math;
  }
};

TEST_P(SmallFamilies, LossAndGradientsAreThoseOfTheFormulas) {
  for (const SmallFamily family : test::kSmallFamilies) {
    SCOPED_TRACE(name_of(family));
    const SmallModel its = test::small_model(family);
    const test::TestBatch batch = batch_of();
    const BatchTensors there = test::on_device(GetParam(), batch.tensors);
    test::ModelRunner runner(small_table(its, DType::f32, attention()), LossKind::causal_lm,
                             batch.tensors.shape, GetParam());
    runner.randomise(1, 0.2f);
    Reference reference(its, runner.hf_params());
    const at::Tensor expected = reference.loss(batch);
    expected.backward();
    at::Tensor logits =
        at::full({batch.tensors.shape.tokens, SmallModel::kVocab}, NAN, at::device(GetParam()));
    EXPECT_NEAR(runner.forward(kKey, there, logits), expected.item<double>(),
                5e-6 * expected.item<double>());
    const at::Tensor third = batch.tensors.input_ids.narrow(0, 47, 64).to(at::kLong);
    const at::Tensor exact = reference.logits_of(third).detach();
    EXPECT_LT((logits.cpu().narrow(0, 47, 64) - exact).norm().item<double>(),
              5e-6 * exact.norm().item<double>());
    const auto ours = gradients(runner, there);
    for (const auto& [name, theirs] : reference.grads()) {
      at::Tensor grad = theirs;
      // Exactly zero of a key's bias without rotary positions; autograd has rounding errors there.
      if (family == SmallFamily::opt350 && name.ends_with("qkv.bias"))
        grad.narrow(0, kWidth, kWidth).zero_();
      const double error = (ours.at(name).to(at::kCPU, at::kDouble) - grad).norm().item<double>();
      EXPECT_LT(error, 2e-5 * grad.norm().item<double>()) << name;
    }
    EXPECT_EQ(ours.size(), reference.grads().size());
  }
}

TEST_P(SmallFamilies, TakeExactlyTheDeclaredScratch) {
  for (const SmallFamily family : test::kSmallFamilies)
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      SCOPED_TRACE(std::string(name_of(family)) + ", " + std::string(name_of(type)));
      const test::TestBatch batch = batch_of();
      const BatchTensors there = test::on_device(GetParam(), batch.tensors);
      test::ModelRunner runner(small_table(test::small_model(family), type, attention()),
                               LossKind::causal_lm, batch.tensors.shape, GetParam());
      runner.randomise(1, 0.1f);
      for (const auto& [name, grad] : gradients(runner, there))
        EXPECT_TRUE(grad.isfinite().all().item<bool>()) << name;
      for (size_t b = 0; b < runner.table().blocks.size(); b++) {
        const BlockTable& block = runner.table().blocks[b];
        const ScratchNeed need = block.scratch(batch.tensors.shape);
        EXPECT_EQ(runner.forward_peak_bytes(static_cast<int>(b)), need.forward_bytes) << block.name;
        EXPECT_EQ(runner.backward_peak_bytes(static_cast<int>(b)), need.backward_bytes)
            << block.name;
      }
    }
}

TEST_P(SmallFamilies, SixteenBitsFollowFp32) {
  for (const SmallFamily family : test::kSmallFamilies) {
    const test::TestBatch batch = batch_of();
    const BatchTensors there = test::on_device(GetParam(), batch.tensors);
    const SmallModel its = test::small_model(family);
    const bool is_relu = family == SmallFamily::opt350;  // its slope jumps at zero
    test::ModelRunner wide(small_table(its, DType::f32, attention()), LossKind::causal_lm,
                           batch.tensors.shape, GetParam());
    wide.randomise(1, 0.1f);
    const auto expected = gradients(wide, there);
    for (const DType type : {DType::bf16, DType::f16}) {
      SCOPED_TRACE(std::string(name_of(family)) + ", " + std::string(name_of(type)));
      test::ModelRunner narrow(small_table(its, type, attention()), LossKind::causal_lm,
                               batch.tensors.shape, GetParam());
      narrow.randomise(1, 0.1f);
      for (const auto& [name, grad] : gradients(narrow, there)) {
        const at::Tensor& exact = expected.at(name);
        const double bar = type == DType::bf16 ? 0.08 : is_relu ? 0.02 : 0.01;
        EXPECT_LT((grad - exact).norm().item<double>(), bar * exact.norm().item<double>()) << name;
      }
    }
  }
}

/** transformers multiplies words of 16 bits by a tensor of their type (Gemma), or by a number
 * (Granite). */
TEST_P(SmallFamilies, AScaleOfWordsIsRoundedWhereItsRuleSaysSo) {
  constexpr int64_t V = kWidth;
  constexpr float kScale = 12.1f;
  test::TestBatch batch({20}, 0, V, 4);
  batch.tensors.labels = batch.tensors.input_ids;
  at::Tensor found[2];
  for (const bool rounds : {false, true}) {
    ModelTable model;
    model.head = HeadKind::causal_lm;
    model.width = model.vocab_size = V;
    model.compute = DType::bf16;
    ModelBuilder builder(model, "", /*gpu_multiprocessors=*/192);
    BlockBuilder words = builder.block("embeddings", BlockKind::embeddings);
    words.end(words.embedding("sum", words.matrix("word", V, V, {"word"}), kNone, kNone,
                              {.word_scale = kScale, .rounds = rounds}));
    BlockBuilder head = builder.block("head", BlockKind::head);
    head.vocabulary_loss(head.input(), head.matrix("lm_head", V, V, {"lm_head"}), kNone);
    head.end();
    test::ModelRunner runner(model, LossKind::causal_lm, batch.tensors.shape, GetParam());
    runner.randomise(1, 0.2f);
    runner.param(1, 0).copy_(at::eye(V));  // the logits are the embeddings
    at::Tensor& logits = found[rounds ? 1 : 0];
    logits = at::full({batch.tensors.shape.tokens, V}, NAN, at::device(GetParam()));
    runner.forward(kKey, test::on_device(GetParam(), batch.tensors), logits);
    const at::Tensor rows =
        runner.param(0, 0).cpu().index_select(0, batch.tensors.input_ids.to(at::kLong));
    const at::Tensor expected =
        rounds ? rows * at::scalar_tensor(kScale, at::kBFloat16).expand_as(rows) : rows * kScale;
    EXPECT_TRUE(at::equal(logits.cpu(), expected.to(at::kFloat))) << rounds;
  }
  EXPECT_FALSE(at::equal(found[0], found[1]));
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         SmallFamilies,
                         ::testing::Values(at::kCPU, at::kCUDA),
                         [](const auto& param) {
                           return c10::DeviceTypeName(param.param, /*lower_case=*/true);
                         });

}  // namespace
}  // namespace ferry
