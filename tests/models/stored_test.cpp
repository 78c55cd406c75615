// Linear maps whose frozen matrix is stored in another way than the type of compute: the same as
// with the values that the stored matrix stands for.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/blocks/block_builder.h"
#include "models/core/compile.h"
#include "models/ops/linear/stored.h"
#include "tests/models/ops_case.h"

namespace ferry {
namespace {

constexpr int64_t kWidth = 64, kVocab = 61;
constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7};

/** A layer whose maps are frozen, with all that a map has: a residual, a bias, a factor, and a part
 * of a gradient that is there before. `inner` rows and columns are of more than a tile. */
ModelTable model_of(DType compute, Storage storage, int64_t inner) {
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
    set_storage(model, 1, p, storage);
  }
  return model;
}

class StoredLinear : public testing::TestWithParam<std::tuple<DType, Storage>> {};

TEST_P(StoredLinear, IsThatOfTheValues) {
  const auto [compute, storage] = GetParam();
  constexpr int64_t kInner = 1024 + 64;
  ASSERT_GT(kInner * kInner, kTile_values);
  test::TestBatch batch({20, 7, 5}, 1, kVocab, 4);
  BatchTensors& b = batch.tensors;
  b.labels = b.input_ids.clone();
  b.labels.narrow(0, 27, 5).fill_(-100);
  b.loss_weight = 1.0f / 27;
  test::ModelRunner tiled(model_of(compute, storage, kInner), LossKind::causal_lm, b.shape),
      whole(model_of(compute, Storage::compute, kInner), LossKind::causal_lm, b.shape);
  tiled.randomise(5, 0.05f);
  whole.randomise(5, 0.05f);
  const BlockTable& layer = tiled.table().blocks[1];
  for (int p = 0; p < 3; ++p) {
    const StoredMatrix matrix = layer.params[p].stored(compute);
    whole.param(1, p).copy_(test::values_of(matrix, tiled.param(1, p)));
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
  const int64_t tile_bytes = kTile_values * static_cast<int64_t>(size_of(compute));
  EXPECT_LE(need.forward_bytes - without.forward_bytes, tile_bytes);
  EXPECT_LE(need.backward_bytes - without.backward_bytes, tile_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    StoredLinear,
    testing::Combine(
        testing::Values(DType::f32, DType::bf16, DType::f16),
        testing::Values(Storage::f32, Storage::f16, Storage::bf16, Storage::int8, Storage::nf4)),
    [](const auto& info) {
      return std::string(name_of(std::get<0>(info.param))) + "_" +
             std::string(name_of(std::get<1>(info.param)));
    });

TEST(StoredTile, HasTheValuesOfItsRowsAndColumns) {
  for (const Storage storage : {Storage::int8, Storage::nf4, Storage::bf16})
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      const StoredMatrix matrix = stored_matrix(storage, 150, 192, type);
      const at::Tensor bytes = test::stored(matrix, ops::random({150, 192}));
      at::Tensor tile = at::empty({70, 64}, scalar_type_of(type));
      ops::read_tile(matrix, bytes, 77, 128, tile);
      const at::Tensor values = test::values_of(matrix, bytes).narrow(0, 77, 70).narrow(1, 128, 64);
      EXPECT_TRUE(at::equal(tile, values.to(tile.scalar_type()))) << name_of(storage);
    }
}

}  // namespace
}  // namespace ferry
