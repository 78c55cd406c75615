// Small models of each family on a GPU against the same ones on the CPU: logits, loss and the
// gradient of every parameter, in fp32, and in fp16 with flash attention against fp32. Dropout
// draws the same masks on both but for attention's, which LibTorch draws on a GPU; so attention
// drops nothing here.

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "models/adapters/bottleneck.h"
#include "models/adapters/lora.h"
#include "models/bert/bert_table.h"
#include "models/decoder/decoder_table.h"
#include "models/ops/scratch_sizes.h"
#include "tests/models/model_runner.h"

namespace ferry {
namespace {

/** Both round to fp32, 6e-8 an operation, but add in other orders, and a few layers there and back
 * make some tens of that: the CPU's gradients are up to 5e-6 from fp64 (decoder_block_test.cpp). A
 * wrong mask or a row at the wrong place is percents. */
constexpr double kBar = 1e-5;
/** fp16 rounds to 5e-4 a value, weights too; a row that sees another's keys is tens of percents. */
constexpr double kBar_fp16 = 0.02;

constexpr int64_t kVocab = ops::kVocabChunk + 100;  // two chunks of logits
constexpr int64_t kWidth = 64, kHeads = 4, kInner = 96, kLayers = 2, kPositions = 64;
constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7, .micro_batch = 1};

struct Case {
  std::string name;
  LossKind loss = LossKind::cross_entropy;
  DecoderFamily family = DecoderFamily::llama;  ///< of a causal language model
  float dropout = 0;
  void (*adapt)(ModelTable&) = nullptr;
};

bool is_never_whole(const HfEntry&) {
  return false;
}

void add_dora(ModelTable& model) {
  add_lora(model, {.of = [](const std::string&) { return LoraOfModule{.rank = 4, .factor = 0.5f}; },
                   .dora = true,
                   .is_whole = is_never_whole});
}

void add_dora_with_dropout(ModelTable& model) {
  add_lora(model, {.of = [](const std::string&) { return LoraOfModule{.rank = 4, .factor = 0.5f}; },
                   .dropout = 0.1f,
                   .dora = true,
                   .is_whole = is_never_whole});
}

template <BottleneckKind kKind>
void add_bottleneck(ModelTable& model) {
  add_bottlenecks(model, {.kind = kKind, .size = 8, .is_whole = is_never_whole});
}

/** The device and type that it computes in, and its attention. */
struct Way {
  at::Device device = at::kCPU;
  DType compute = DType::f32;
  AttentionBackend attention = AttentionBackend::cpu_math;
};

ModelTable bert_of(const Case& its, const Way& way) {
  BertConfig config;
  config.vocab_size = kVocab;
  config.hidden_size = kWidth;
  config.num_hidden_layers = kLayers;
  config.num_attention_heads = kHeads;
  config.intermediate_size = kInner;
  config.max_position_embeddings = kPositions;
  TableOptions options;
  options.head = head_of(its.loss);
  options.n_labels = 3;
  options.compute = way.compute;
  options.attention = way.attention;
  options.hidden_dropout = options.classifier_dropout = its.dropout;
  options.attention_dropout = 0.0f;
  return make_bert_table(config, options);
}

ModelTable decoder_of(const Case& its, const Way& way) {
  const bool is_llama = its.family == DecoderFamily::llama;
  return make_decoder_table({.family = its.family,
                             .vocab_size = kVocab,
                             .hidden_size = kWidth,
                             .num_hidden_layers = kLayers,
                             .num_attention_heads = kHeads,
                             .num_key_value_heads = is_llama ? kHeads / 2 : kHeads,
                             .intermediate_size = kInner,
                             .max_position_embeddings = kPositions,
                             .tie_word_embeddings = !is_llama,
                             .hidden_dropout = its.dropout},
                            {.compute = way.compute, .attention = way.attention});
}

/** Ragged sequences, one of a single token, and a dummy tail. */
test::TestBatch batch_of(const Case& its) {
  test::TestBatch batch({40, 7, 64, 1, 20}, 1, kVocab, 4);
  BatchTensors& b = batch.tensors;
  at::manual_seed(9);
  if (its.loss == LossKind::cross_entropy) {
    b.labels = at::randint(0, 3, {b.n_seqs_real}, at::kInt);
  } else if (its.loss == LossKind::masked_lm) {
    b.label_rows = at::arange(1, b.shape.tokens - 20, 5, at::kInt);
    b.labels = at::full({b.shape.tokens}, -100, at::kInt);
    b.labels.index_put_({b.label_rows.to(at::kLong)},
                        at::randint(0, kVocab, b.label_rows.sizes(), at::kInt));
  } else {
    batch.label_next_tokens();
  }
  b.loss_weight = 0.25f;
  b.grad_scale = 8;
  b.label_smoothing = 0.1f;
  return batch;
}

struct Result {
  float loss = 0;
  at::Tensor logits;
  std::vector<std::vector<at::Tensor>> grads;  ///< of each block, borrowed parameters at the end
};

Result run(const Case& its, const BatchTensors& batch, const Way& way) {
  const at::Device device = way.device;
  const bool is_decoder = its.loss == LossKind::causal_lm;
  ModelTable table = is_decoder ? decoder_of(its, way) : bert_of(its, way);
  if (its.adapt) its.adapt(table);
  test::ModelRunner runner(std::move(table), its.loss, batch.shape, device);
  runner.randomise(1, 0.1f);
  const BatchTensors there = test::on_device(device, batch);
  const int64_t rows = its.loss == LossKind::cross_entropy ? batch.n_seqs
                       : batch.label_rows.defined()        ? batch.label_rows.size(0)
                                                           : batch.shape.tokens;
  const int64_t columns = its.loss == LossKind::cross_entropy ? 3 : kVocab;
  at::Tensor logits = at::full({rows, columns}, NAN, at::device(device));
  Result result;
  result.loss = runner.forward(kKey, there, logits);
  runner.backward(kKey, there);
  result.logits = logits.cpu();
  for (size_t b = 0; b < runner.table().blocks.size(); b++) {
    const BlockTable& block = runner.table().blocks[b];
    result.grads.emplace_back();
    const auto is_trained = [&](size_t i) {
      if (i < block.params.size()) return block.params[i].trainable;
      const BorrowedParam& of = block.borrowed[i - block.params.size()];
      return runner.table().blocks[of.block].params[of.param].trainable;
    };
    // Cloned: on a CPU they are the runner's memory.
    for (size_t i = 0; i < block.params.size() + block.borrowed.size(); i++)
      if (is_trained(i))
        result.grads[b].push_back(
            runner.grad(static_cast<int>(b), static_cast<int>(i)).clone().cpu());
  }
  return result;
}

void expect_close(const at::Tensor& ours,
                  const at::Tensor& reference,
                  double bar,
                  const std::string& what) {
  const at::Tensor exact = reference.to(at::kDouble);
  const double size = exact.norm().item<double>();
  EXPECT_GT(size, 0) << what;
  EXPECT_LE((ours.to(at::kDouble) - exact).norm().item<double>(), bar * size) << what;
}

class CudaModels : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!at::hasCUDA() || at::cuda::device_count() == 0) GTEST_SKIP() << "no CUDA GPU here";
  }
};

void expect_same_model(const Case& its, const Way& way, double bar) {
  const test::TestBatch batch = batch_of(its);
  const Result cpu = run(its, batch.tensors, {}), gpu = run(its, batch.tensors, way);
  EXPECT_NEAR(gpu.loss / cpu.loss, 1, bar);
  expect_close(gpu.logits, cpu.logits, bar, "logits");
  ASSERT_EQ(gpu.grads.size(), cpu.grads.size());
  for (size_t b = 0; b < cpu.grads.size(); b++) {
    ASSERT_EQ(gpu.grads[b].size(), cpu.grads[b].size());
    // As the model keeps them: the gradient of a key's bias alone is zero but for rounding errors,
    // and lies between those of queries and values.
    for (size_t i = 0; i < cpu.grads[b].size(); i++)
      expect_close(gpu.grads[b][i], cpu.grads[b][i], bar,
                   "block " + std::to_string(b) + ", parameter " + std::to_string(i));
  }
}

TEST_P(CudaModels, FollowTheCpu) {
  expect_same_model(GetParam(),
                    {.device = {at::kCUDA, 0}, .attention = AttentionBackend::memory_efficient},
                    kBar);
}

TEST_P(CudaModels, InFp16WithFlashAttentionFollowTheCpu) {
  if (at::cuda::getCurrentDeviceProperties()->major < 8)
    GTEST_SKIP() << "no flash attention on this GPU";
  expect_same_model(
      GetParam(),
      {.device = {at::kCUDA, 0}, .compute = DType::f16, .attention = AttentionBackend::flash},
      kBar_fp16);
}

INSTANTIATE_TEST_SUITE_P(
    Families,
    CudaModels,
    ::testing::Values(Case{"bert_classification", LossKind::cross_entropy},
                      Case{"bert_classification_dropout", LossKind::cross_entropy, {}, 0.1f},
                      Case{"bert_masked_lm", LossKind::masked_lm},
                      Case{"bert_masked_lm_dropout", LossKind::masked_lm, {}, 0.1f},
                      Case{"llama", LossKind::causal_lm, DecoderFamily::llama},
                      Case{"gpt2", LossKind::causal_lm, DecoderFamily::gpt2},
                      Case{"gpt2_dropout", LossKind::causal_lm, DecoderFamily::gpt2, 0.1f},
                      Case{"llama_dora", LossKind::causal_lm, DecoderFamily::llama, 0, add_dora},
                      Case{"gpt2_dora_dropout", LossKind::causal_lm, DecoderFamily::gpt2, 0,
                           add_dora_with_dropout},
                      Case{"gpt2_low_rank_adapter", LossKind::causal_lm, DecoderFamily::gpt2, 0,
                           add_bottleneck<BottleneckKind::low_rank>},
                      Case{"llama_compacter", LossKind::causal_lm, DecoderFamily::llama, 0,
                           add_bottleneck<BottleneckKind::compacter>}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace ferry
