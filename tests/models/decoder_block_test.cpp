// Whole decoders of a few blocks on the CPU: loss and gradients against the same model written with
// autograd in fp64 from Hugging Face's formulas, memory exactly as declared, dropout whose
// gradients fit the loss, and the same bits wherever the memory lies.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/decoder/decoder_table.h"
#include "tests/models/model_runner.h"

namespace ferry {
namespace {

constexpr int64_t kVocab = 300, kWidth = 48, kHeads = 6, kInner = 80;

struct Case {
  DecoderFamily family = DecoderFamily::llama;
  DType type = DType::f32;
  int64_t kv_heads = kHeads;
  bool tied = false;
  float dropout = 0;
};

DecoderConfig config_of(const Case& its) {
  return {.family = its.family,
          .vocab_size = kVocab,
          .hidden_size = kWidth,
          .num_hidden_layers = 2,
          .num_attention_heads = kHeads,
          .num_key_value_heads = its.kv_heads,
          .intermediate_size = kInner,
          .max_position_embeddings = 64,
          .tie_word_embeddings = its.tied,
          .norm_eps = 1e-5f,
          .rope_theta = 500,
          .hidden_dropout = its.dropout,
          .attention_dropout = its.dropout};
}
ModelTable table_of(const Case& its) {
  return make_decoder_table(config_of(its), {.compute = its.type});
}

std::vector<Case> models() {
  return {{.family = DecoderFamily::llama, .kv_heads = 2},
          {.family = DecoderFamily::llama, .kv_heads = 6, .tied = true},
          {.family = DecoderFamily::llama, .kv_heads = 1, .dropout = 0.1f},
          {.family = DecoderFamily::gpt2, .tied = true},
          {.family = DecoderFamily::gpt2, .tied = true, .dropout = 0.1f}};
}
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Case& model : models()) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      cases.push_back(model);
      cases.back().type = type;
    }
  }
  return cases;
}
std::string name_of(const Case& its) {
  return std::string(its.family == DecoderFamily::llama ? "llama" : "gpt2") + " " +
         std::string(name_of(its.type)) + ", " + std::to_string(its.kv_heads) + " kv heads" +
         (its.tied ? ", tied" : "") + (its.dropout > 0 ? ", dropout" : "");
}

/** Ragged sequences and a dummy tail; each token's label is the next one of its sequence. */
test::TestBatch batch_of(uint64_t seed = 4) {
  test::TestBatch batch({40, 7, 64, 1, 20}, 1, kVocab, seed);
  batch.label_next_tokens();
  batch.tensors.loss_weight = 1.0f / 108;
  return batch;
}

constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7, .micro_batch = 1};

std::map<std::string, at::Tensor> gradients(test::ModelRunner& runner, const BatchTensors& batch) {
  runner.poison();
  runner.forward(kKey, batch);
  runner.backward(kKey, batch);
  return runner.hf_grads();
}

/** The model as transformers writes it, on fp64 leaves by Hugging Face name; one sequence after the
 * other, so no packing to get wrong. */
class Reference {
 public:
  Reference(const Case& its, const std::map<std::string, at::Tensor>& params) : its_(its) {
    for (const auto& [name, value] : params)
      params_[name] = value.to(at::kDouble).clone().requires_grad_();
  }

  at::Tensor loss(const test::TestBatch& batch, float smoothing) {
    at::Tensor sum = at::zeros({}, at::kDouble);
    for (int64_t s = 0; s < batch.tensors.n_seqs_real; s++) {
      const int64_t begin = batch.cu_seqlens[s], n = batch.cu_seqlens[s + 1] - begin;
      if (n < 2) continue;
      const at::Tensor ids = batch.tensors.input_ids.narrow(0, begin, n).to(at::kLong);
      const at::Tensor logits = logits_of(ids);
      sum = sum + at::cross_entropy_loss(logits.narrow(0, 0, n - 1), ids.narrow(0, 1, n - 1), {},
                                         at::Reduction::Sum, -100, smoothing);
    }
    return sum * static_cast<double>(batch.tensors.loss_weight);
  }
  at::Tensor logits_of(const at::Tensor& ids) {
    return its_.family == DecoderFamily::llama ? llama(ids) : gpt2(ids);
  }
  std::map<std::string, at::Tensor> grads() {
    std::map<std::string, at::Tensor> result;
    for (const auto& [name, value] : params_)
      result[name] = value.grad();
    return result;
  }

 private:
  at::Tensor& p(const std::string& name) { return params_.at(name); }
  at::Tensor rms(const at::Tensor& x, const std::string& name) {
    return x * at::rsqrt((x * x).mean(1, true) + 1e-5) * p(name);
  }
  at::Tensor layer_norm(const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {kWidth}, p(name + ".weight"), p(name + ".bias"), 1e-5);
  }
  at::Tensor linear(const at::Tensor& x, const std::string& name) {
    return x.matmul(p(name + ".weight").t());
  }
  /** GPT-2's Conv1D has its weight the other way round. */
  at::Tensor conv1d(const at::Tensor& x, const std::string& name) {
    return x.matmul(p(name + ".weight")) + p(name + ".bias");
  }
  /** (H, n, d) each. */
  static at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const int64_t n = q.size(1);
    const at::Tensor scores =
        q.matmul(k.transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(2)));
    const at::Tensor masked = scores.masked_fill(at::ones({n, n}, at::kBool).triu(1), -INFINITY);
    return at::softmax(masked, -1).matmul(v).transpose(0, 1).reshape({n, -1});
  }
  static at::Tensor heads_of(const at::Tensor& x, int64_t n_heads) {
    return x.view({x.size(0), n_heads, -1}).transpose(0, 1);
  }
  static at::Tensor turned(const at::Tensor& heads) {
    const int64_t n = heads.size(1), d = heads.size(2);
    const at::Tensor frequency =
        at::pow(500.0, at::arange(0, d, 2, at::kDouble) / static_cast<double>(-d));
    const at::Tensor angle = at::arange(n, at::kDouble).unsqueeze(1) * frequency;
    const at::Tensor twice = at::cat({angle, angle}, 1);
    const at::Tensor half = at::cat({-heads.narrow(2, d / 2, d / 2), heads.narrow(2, 0, d / 2)}, 2);
    return heads * twice.cos() + half * twice.sin();
  }

  at::Tensor llama(const at::Tensor& ids) {
    at::Tensor x = p("model.embed_tokens.weight").index_select(0, ids);
    for (int64_t i = 0; i < 2; i++) {
      const std::string hf = "model.layers." + std::to_string(i) + ".";
      const at::Tensor a = rms(x, hf + "input_layernorm.weight");
      const at::Tensor q = heads_of(linear(a, hf + "self_attn.q_proj"), kHeads);
      const at::Tensor k = heads_of(linear(a, hf + "self_attn.k_proj"), its_.kv_heads);
      const at::Tensor v = heads_of(linear(a, hf + "self_attn.v_proj"), its_.kv_heads);
      const int64_t group = kHeads / its_.kv_heads;
      const at::Tensor context =
          attend(turned(q), turned(k).repeat_interleave(group, 0), v.repeat_interleave(group, 0));
      x = x + linear(context, hf + "self_attn.o_proj");
      const at::Tensor m = rms(x, hf + "post_attention_layernorm.weight");
      x = x + linear(at::silu(linear(m, hf + "mlp.gate_proj")) * linear(m, hf + "mlp.up_proj"),
                     hf + "mlp.down_proj");
    }
    const at::Tensor word = its_.tied ? p("model.embed_tokens.weight") : p("lm_head.weight");
    return rms(x, "model.norm.weight").matmul(word.t());
  }

  at::Tensor gpt2(const at::Tensor& ids) {
    at::Tensor x = p("transformer.wte.weight").index_select(0, ids) +
                   p("transformer.wpe.weight").narrow(0, 0, ids.size(0));
    for (int64_t i = 0; i < 2; i++) {
      const std::string hf = "transformer.h." + std::to_string(i) + ".";
      const at::Tensor qkv = conv1d(layer_norm(x, hf + "ln_1"), hf + "attn.c_attn");
      const at::Tensor context = attend(heads_of(qkv.narrow(1, 0, kWidth), kHeads),
                                        heads_of(qkv.narrow(1, kWidth, kWidth), kHeads),
                                        heads_of(qkv.narrow(1, 2 * kWidth, kWidth), kHeads));
      x = x + conv1d(context, hf + "attn.c_proj");
      const at::Tensor up = conv1d(layer_norm(x, hf + "ln_2"), hf + "mlp.c_fc");
      x = x + conv1d(at::gelu(up), hf + "mlp.c_proj");
    }
    return layer_norm(x, "transformer.ln_f").matmul(p("transformer.wte.weight").t());
  }

  Case its_;
  std::map<std::string, at::Tensor> params_;
};

TEST(Decoders, LossAndGradientsAreThoseOfTheFormulas) {
  for (const Case& its : models()) {
    if (its.dropout > 0) continue;
    SCOPED_TRACE(name_of(its));
    test::TestBatch batch = batch_of();
    batch.tensors.label_smoothing = 0.1f;
    test::ModelRunner runner(table_of(its), LossKind::causal_lm, batch.tensors.shape);
    runner.randomise(1, 0.2f);
    Reference reference(its, runner.hf_params());
    const at::Tensor expected = reference.loss(batch, 0.1f);
    expected.backward();
    at::Tensor logits = at::full({batch.tensors.shape.tokens, kVocab}, NAN);
    EXPECT_NEAR(runner.forward(kKey, batch.tensors, logits), expected.item<double>(), 5e-6);
    const at::Tensor third = batch.tensors.input_ids.narrow(0, 47, 64).to(at::kLong);
    const at::Tensor exact = reference.logits_of(third).detach();
    EXPECT_LT((logits.narrow(0, 47, 64) - exact).norm().item<double>(),
              2e-6 * exact.norm().item<double>());
    const auto ours = gradients(runner, batch.tensors);
    for (const auto& [name, theirs] : reference.grads()) {
      at::Tensor grad = theirs;
      // Exactly zero of a key's bias; autograd has rounding errors there.
      if (name.ends_with("c_attn.bias")) grad.narrow(0, kWidth, kWidth).zero_();
      const double error = (ours.at(name).to(at::kDouble) - grad).norm().item<double>();
      EXPECT_LT(error, 5e-6 * grad.norm().item<double>()) << name;
    }
    EXPECT_EQ(ours.size(), reference.grads().size());
  }
}

TEST(Decoders, TakeExactlyTheDeclaredScratch) {
  for (const Case& its : all_cases()) {
    SCOPED_TRACE(name_of(its));
    const test::TestBatch batch = batch_of();
    test::ModelRunner runner(table_of(its), LossKind::causal_lm, batch.tensors.shape);
    runner.randomise(1, 0.1f);
    gradients(runner, batch.tensors);
    for (size_t b = 0; b < runner.table().blocks.size(); b++) {
      const BlockTable& block = runner.table().blocks[b];
      const ScratchNeed need = block.scratch(batch.tensors.shape);
      EXPECT_EQ(runner.forward_peak_bytes(static_cast<int>(b)), need.forward_bytes) << block.name;
      EXPECT_EQ(runner.backward_peak_bytes(static_cast<int>(b)), need.backward_bytes) << block.name;
    }
  }
}

TEST(Decoders, WriteEveryGradientAndTheTailChangesNone) {
  for (const Case& its : all_cases()) {
    SCOPED_TRACE(name_of(its));
    const test::TestBatch first = batch_of();
    test::TestBatch second = batch_of();
    for (int64_t t = second.tensors.shape.tokens - 20; t < second.tensors.shape.tokens; t++)
      second.input_ids[t] = 1 + second.input_ids[t] % 200;
    test::ModelRunner runner(table_of(its), LossKind::causal_lm, first.tensors.shape);
    runner.randomise(1, 0.1f);
    const auto a = gradients(runner, first.tensors), b = gradients(runner, second.tensors);
    for (const auto& [name, grad] : a) {
      EXPECT_TRUE(grad.isfinite().all().item<bool>()) << name;
      EXPECT_TRUE(at::equal(grad, b.at(name))) << name;
    }
  }
}

TEST(Decoders, GradientsFitTheLossWithDropout) {
  // Along a random direction the loss changes as the gradient says; a mask drawn again with another
  // key in the backward would be off by tens of percent.
  for (const Case& its : models()) {
    if (its.dropout == 0) continue;
    SCOPED_TRACE(name_of(its));
    const test::TestBatch batch = batch_of();
    test::ModelRunner runner(table_of(its), LossKind::causal_lm, batch.tensors.shape);
    runner.randomise(1, 0.15f);
    gradients(runner, batch.tensors);
    const auto by_name = runner.hf_grads();
    for (size_t b = 0; b < runner.table().blocks.size(); b++) {
      const BlockTable& block = runner.table().blocks[b];
      double predicted = 0;
      std::vector<at::Tensor> directions;
      at::manual_seed(static_cast<uint64_t>(b));
      for (size_t i = 0; i < block.params.size(); i++) {
        at::Tensor grad = runner.grad(static_cast<int>(b), static_cast<int>(i)).clone();
        if (b == 0 && i == 0 && its.tied) grad = by_name.at("transformer.wte.weight");
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

TEST(Decoders, SameBitsAgainAndElsewhere) {
  for (const Case& its : all_cases()) {
    SCOPED_TRACE(name_of(its));
    const test::TestBatch batch = batch_of();
    test::ModelRunner one(table_of(its), LossKind::causal_lm, batch.tensors.shape);
    const test::Region between(123456);
    test::ModelRunner two(table_of(its), LossKind::causal_lm, batch.tensors.shape);
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

TEST(Decoders, SixteenBitsFollowFp32) {
  for (const DecoderFamily family : {DecoderFamily::llama, DecoderFamily::gpt2}) {
    Case its = {.family = family, .tied = family == DecoderFamily::gpt2};
    const test::TestBatch batch = batch_of();
    test::ModelRunner wide(table_of(its), LossKind::causal_lm, batch.tensors.shape);
    wide.randomise(1, 0.1f);
    const auto expected = gradients(wide, batch.tensors);
    for (const DType type : {DType::bf16, DType::f16}) {
      its.type = type;
      SCOPED_TRACE(name_of(its));
      test::ModelRunner narrow(table_of(its), LossKind::causal_lm, batch.tensors.shape);
      narrow.randomise(1, 0.1f);
      for (const auto& [name, grad] : gradients(narrow, batch.tensors)) {
        const at::Tensor& exact = expected.at(name);
        EXPECT_LT((grad - exact).norm().item<double>(),
                  (type == DType::bf16 ? 0.06 : 0.008) * exact.norm().item<double>())
            << name;
      }
    }
  }
}

}  // namespace
}  // namespace ferry
