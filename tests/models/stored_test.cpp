// Linear maps whose frozen matrix is stored in another way than the type of compute: the same as
// with the values that the stored matrix stands for.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/blocks/block_builder.h"
#include "models/core/compile.h"
#include "models/ops/linear/stored.h"
#include "tests/models/ops_case.h"

namespace ferry {
namespace {

constexpr int64_t kWidth = 256, kVocab = 61;
constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7};

/** A layer whose maps are frozen, with all that a map has: a residual, a bias, a factor, and a part
 * of a gradient that is there before. `inner` rows and columns are of more than a tile. */
ModelTable model_of(DType compute, Storage storage, int64_t inner, bool has_parts = false) {
  ModelTable model;
  model.head = HeadKind::causal_lm;
  model.width = kWidth;
  model.vocab_size = kVocab;
  model.compute = compute;
  ModelBuilder builder(model, "", /*gpu_multiprocessors=*/192);
  {
    BlockBuilder b = builder.block("embeddings", BlockKind::embeddings);
    b.end(b.embedding("sum", b.words("word", kVocab, kWidth, {"word"}), kNone, kNone));
  }
  {
    BlockBuilder b = builder.block("layer", BlockKind::layer);
    const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns) {
      return b.matrix(name, rows, columns, {name});
    };
    const ParamId up = matrix("up", inner, kWidth), middle = matrix("middle", inner, inner);
    const ParamId down = matrix("down", kWidth, inner), up_bias = b.bias("up_bias", inner, {"ub"});
    const ValueId x = b.input();
    const ValueId wide = b.linear("wide", x, up, up_bias);
    const ValueId t = b.tanh("t", wide);
    const ValueId first = b.linear("first", t, middle, kNone, wide, 0.25f);
    b.end(b.linear("y", b.linear("second", t, middle, kNone, first), down, kNone, x));
  }
  BlockBuilder b = builder.block("head", BlockKind::head);
  b.vocabulary_loss(b.input(), b.borrow_words(), kNone);
  b.end();
  for (int p = 0; p < 3; ++p) {
    model.blocks[1].params[p].trainable = false;
    const int64_t rows = model.blocks[1].params[p].shape[0];
    set_storage(model, 1, p,
                has_parts ? MatrixStorage({{storage, rows / 4},
                                           {Storage::q8_0, rows / 2},
                                           {storage, rows - rows / 4 - rows / 2}})
                          : MatrixStorage(storage));
  }
  return model;
}

/** Those that have a matrix's values in codes. */
constexpr Storage kQuantised[] = {Storage::int8, Storage::nf4,  Storage::nf4_nested,
                                  Storage::q8_0, Storage::q4_0, Storage::q4_1,
                                  Storage::q4_k, Storage::q6_k, Storage::mxfp4};

class StoredLinear : public testing::TestWithParam<std::tuple<DType, Storage, bool>> {};

TEST_P(StoredLinear, IsThatOfTheValues) {
  const auto [compute, storage, has_parts] = GetParam();
  constexpr int64_t kInner = 1024 + 256;
  ASSERT_GT(kInner * kInner, tile_values(/*cuda=*/false));
  test::TestBatch batch({20, 7, 5}, 1, kVocab, 4);
  BatchTensors& b = batch.tensors;
  b.labels = b.input_ids.clone();
  b.labels.narrow(0, 27, 5).fill_(-100);
  b.loss_weight = 1.0f / 27;
  test::ModelRunner tiled(model_of(compute, storage, kInner, has_parts), LossKind::causal_lm,
                          b.shape),
      whole(model_of(compute, Storage::compute, kInner), LossKind::causal_lm, b.shape);
  tiled.randomise(5, 0.05f);
  whole.randomise(5, 0.05f);
  const BlockTable& layer = tiled.table().blocks[1];
  for (int p = 0; p < 3; ++p) {
    const StoredParts parts = layer.params[p].stored(compute);
    EXPECT_EQ(std::ssize(parts), has_parts ? 3 : 1);
    whole.param(1, p).copy_(test::values_of(parts, tiled.param(1, p)));
  }
  for (test::ModelRunner* runner : {&tiled, &whole})
    runner->poison();
  const double bar = compute == DType::f32 ? 1e-6 : compute == DType::f16 ? 1e-3 : 8e-3;
  const float loss = whole.forward(kKey, b);
  EXPECT_NEAR(tiled.forward(kKey, b), loss, bar * loss);
  for (test::ModelRunner* runner : {&tiled, &whole})
    runner->backward(kKey, b);
  ops::expect_close(tiled.grad(0, 0), whole.grad(0, 0).to(at::kDouble), "words", bar);
  ops::expect_close(tiled.grad(1, 3), whole.grad(1, 3).to(at::kDouble), "bias", bar);
  const ScratchNeed need = layer.scratch(b.shape);
  EXPECT_EQ(tiled.forward_peak_bytes(1), need.forward_bytes);
  EXPECT_EQ(tiled.backward_peak_bytes(1), need.backward_bytes);
  const ScratchNeed without = whole.table().blocks[1].scratch(b.shape);
  const int64_t tile_bytes = tile_values(/*cuda=*/false) * static_cast<int64_t>(size_of(compute));
  EXPECT_LE(need.forward_bytes - without.forward_bytes, tile_bytes);
  EXPECT_LE(need.backward_bytes - without.backward_bytes, tile_bytes);
}

std::string name_of_case(const testing::TestParamInfo<StoredLinear::ParamType>& info) {
  const auto& [compute, storage, has_parts] = info.param;
  return fmt::format("{}_{}{}", name_of(compute), name_of(storage), has_parts ? "_parts" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    StoredLinear,
    testing::Combine(testing::Values(DType::f32, DType::bf16, DType::f16),
                     testing::Values(Storage::f32, Storage::f16, Storage::bf16),
                     testing::Values(false)),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(Codes,
                         StoredLinear,
                         testing::Combine(testing::Values(DType::f32, DType::bf16),
                                          testing::ValuesIn(kQuantised),
                                          testing::Values(false)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Parts,
                         StoredLinear,
                         testing::Combine(testing::Values(DType::bf16),
                                          testing::Values(Storage::nf4_nested, Storage::q4_k),
                                          testing::Values(true)),
                         name_of_case);

TEST(StoredTile, HasTheValuesOfItsRowsAndColumns) {
  std::vector<MatrixStorage> storages(std::begin(kQuantised), std::end(kQuantised));
  storages.emplace_back(Storage::bf16);
  storages.push_back(
      MatrixStorage({{Storage::q4_k, 80}, {Storage::nf4_nested, 30}, {Storage::q6_k, 40}}));
  for (const MatrixStorage& storage : storages)
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      const StoredParts matrix = stored_parts(storage, 150, 256, type);
      const at::Tensor bytes = test::stored(matrix, ops::random({150, 256}));
      at::Tensor tile = at::empty({70, 64}, scalar_type_of(type));
      ops::read_tile(matrix, bytes, 77, 128, tile);
      const at::Tensor values = test::values_of(matrix, bytes).narrow(0, 77, 70).narrow(1, 128, 64);
      EXPECT_TRUE(at::equal(tile, values.to(tile.scalar_type()))) << storage.name();
    }
}

}  // namespace
}  // namespace ferry
