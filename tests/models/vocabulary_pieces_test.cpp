// A table of words in pieces, forward and backward: the bits of loss, logits and every gradient are
// those of the whole table, in small models of each way in which families use one.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "models/family.h"
#include "tests/models/model_runner.h"
#include "tests/models/small_configs.h"

namespace ferry {
namespace {

constexpr int64_t kVocab = 2 * 4096 + 61;  // the last piece is no whole chunk of the logits
constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7, .micro_batch = 1};

struct Case {
  std::string name;
  nlohmann::ordered_json config;
  HeadKind head = HeadKind::causal_lm;
};
void PrintTo(const Case& its, std::ostream* out) {
  *out << its.name;
}

std::vector<Case> cases() {
  const auto config = [](std::string_view name) {
    return test::small_config(name, {.vocab = kVocab, .positions = 64}, /*is_whole=*/true);
  };
  std::vector<Case> all = {{"llama", config("llama")},
                           {"tied_llama", config("llama")},
                           {"gpt2", config("gpt2")},
                           {"gptj", config("gptj")},
                           {"gemma2", config("gemma2")},
                           {"opt350", config("opt-350m")},
                           {"bert", config("bert"), HeadKind::masked_lm},
                           {"electra", config("electra"), HeadKind::masked_lm},
                           {"classifier", config("bert"), HeadKind::classification}};
  all[1].config["tie_word_embeddings"] = true;
  return all;
}

/** Tokens of all pieces, some of them several times, and a dummy tail. */
test::TestBatch batch_of(const ModelTable& model) {
  test::TestBatch batch({40, 7, 61, 1, 20}, 1, kVocab, 4);
  BatchTensors& b = batch.tensors;
  for (int i = 0; i < 30; ++i)
    batch.input_ids[static_cast<size_t>(3 * i)] = i % 5 * 1000 + 4000;
  const int64_t n_real = batch.cu_seqlens[static_cast<size_t>(b.n_seqs_real)];
  b.loss_weight = 1.0f / static_cast<float>(n_real);
  b.label_smoothing = 0.1f;
  b.grad_scale = 4;
  if (model.head == HeadKind::classification) {
    b.labels = at::zeros({b.n_seqs_real}, at::kInt);
    return batch;
  }
  b.labels = at::full({b.shape.tokens}, -100, at::kInt);
  b.labels.narrow(0, 0, n_real - 1).copy_(b.input_ids.narrow(0, 1, n_real - 1));
  if (model.head == HeadKind::masked_lm)
    b.label_rows = at::arange(0, n_real - 1, 4, at::TensorOptions().dtype(at::kInt));
  return batch;
}

std::string difference(const at::Tensor& one, const at::Tensor& other) {
  const at::Tensor a = one.cpu(), b = other.cpu();
  if (a.sizes() != b.sizes()) return "another shape";
  if (std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0) return {};
  return "differs by " + std::to_string((a - b).abs().max().item<float>());
}

class VocabularyPieces : public ::testing::TestWithParam<std::tuple<Case, DType, at::DeviceType>> {
 protected:
  void SetUp() override {
    if (device() == at::kCUDA && !at::hasCUDA()) GTEST_SKIP() << "no CUDA GPU here";
  }
  static at::DeviceType device() { return std::get<2>(GetParam()); }
  static ModelTable table(int64_t piece_elements_max) {
    const auto& [its, type, where] = GetParam();
    return make_table(JsonReader::of(its.config, {"config.json", "model.config", ""}),
                      {.head = its.head,
                       .compute = type,
                       .attention = where == at::kCPU ? AttentionBackend::cpu_math
                                                      : AttentionBackend::memory_efficient,
                       .piece_elements_max = piece_elements_max});
  }
  static LossKind loss_of(const ModelTable& model) {
    return model.head == HeadKind::causal_lm   ? LossKind::causal_lm
           : model.head == HeadKind::masked_lm ? LossKind::masked_lm
                                               : LossKind::cross_entropy;
  }
};

TEST_P(VocabularyPieces, HaveTheBitsOfTheWhole) {
  const ModelTable whole_table = table(kPieceElements_max), cut_table = table(1);
  const bool is_lm = is_language_model(whole_table.head);
  ASSERT_GE(cut_table.blocks.size(), whole_table.blocks.size() + (is_lm ? 5 : 2));
  EXPECT_EQ(cut_table.n_params(), whole_table.n_params());
  const test::TestBatch batch = batch_of(whole_table);
  const BatchShape& shape = batch.tensors.shape;
  const BatchTensors there = test::on_device(device(), batch.tensors);
  test::ModelRunner whole(whole_table, loss_of(whole_table), shape, device());
  test::ModelRunner cut(cut_table, loss_of(cut_table), shape, device());
  whole.randomise(5, 0.2f);
  const auto params = whole.hf_params();
  for (const HfEntry& entry : cut_table.hf_names)
    cut.set(entry, params.at(entry.hf_name));

  const int64_t rows =
      batch.tensors.label_rows.defined() ? batch.tensors.label_rows.size(0) : shape.tokens;
  at::Tensor logits, logits_in_pieces;
  if (is_lm) {
    logits = at::zeros({rows, kVocab}, at::device(device()));
    logits_in_pieces = at::zeros({rows, kVocab}, at::device(device()));
  }
  const float loss = whole.forward(kKey, there, logits);
  EXPECT_EQ(cut.forward(kKey, there, logits_in_pieces), loss);
  EXPECT_GT(loss, 0.01f);
  if (is_lm) {
    EXPECT_EQ(difference(logits, logits_in_pieces), "");
  }
  whole.backward(kKey, there);
  cut.backward(kKey, there);
  const auto grads = whole.hf_grads(), grads_of_pieces = cut.hf_grads();
  ASSERT_EQ(grads.size(), grads_of_pieces.size());
  for (const auto& [name, grad] : grads) {
    EXPECT_EQ(difference(grad, grads_of_pieces.at(name)), "") << name;
    if (!name.ends_with("key.bias") && !name.ends_with("k_proj.bias")) {  // softmax does not see it
      EXPECT_GT(grad.abs().max().item<float>(), 0) << name;
    }
  }
}

/** A micro-batch without labels. */
TEST_P(VocabularyPieces, HaveNoLossWithoutLabels) {
  const ModelTable model = table(1);
  if (model.head != HeadKind::masked_lm) return;
  test::TestBatch batch = batch_of(model);
  batch.tensors.label_rows = at::zeros({0}, at::kInt);
  const BatchTensors there = test::on_device(device(), batch.tensors);
  test::ModelRunner runner(model, loss_of(model), batch.tensors.shape, device());
  runner.randomise(5, 0.2f);
  EXPECT_EQ(runner.forward(kKey, there), 0);
  runner.backward(kKey, there);
  for (const auto& [name, grad] : runner.hf_grads())
    EXPECT_EQ(grad.abs().max().item<float>(), 0) << name;
}

INSTANTIATE_TEST_SUITE_P(Small,
                         VocabularyPieces,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values(DType::f32, DType::bf16),
                                            ::testing::Values(at::kCPU, at::kCUDA)),
                         [](const auto& its) {
                           return std::get<0>(its.param).name + "_" +
                                  std::string(name_of(std::get<1>(its.param))) + "_" +
                                  c10::DeviceTypeName(std::get<2>(its.param), /*lower_case=*/true);
                         });

}  // namespace
}  // namespace ferry
