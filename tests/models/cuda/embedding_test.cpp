// The embeddings' sum and their tables' gradients against fp64 ATen: ids that repeat never, often,
// always, across the chunks of the ranked order, and rows that no token names.

#include "models/ops/embedding/embedding.h"
#include "tests/models/cuda/kernel_case.h"

namespace ferry::ops::cuda::test {
namespace {

using Embedding = KernelTest;

TEST_P(Embedding, Forward) {
  const auto [T, W] = shape;
  const auto word = random({50, W}), kind = random({2, W}), position = random({T, W});
  const auto int_options = at::device(at::kCUDA).dtype(at::kInt);
  const auto ids = at::randint(50, {T}, int_options), kinds = at::randint(2, {T}, int_options),
             positions = at::randperm(T, int_options);
  auto sum = poisoned({T, W});
  BatchTensors batch;
  batch.input_ids = ids;
  batch.type_ids = kinds;
  batch.position_ids = positions;
  embedding_forward(batch, word, position, kind, sum);
  expect_close(sum,
               f64(word).index_select(0, ids) + f64(kind).index_select(0, kinds) +
                   f64(position).index_select(0, positions),
               "sum");
  auto words = poisoned({T, W}), with_positions = poisoned({T, W});
  embedding_forward(batch, word, {}, {}, words);
  embedding_forward(batch, word, position, {}, with_positions);
  EXPECT_TRUE(at::equal(words, word.index_select(0, ids)));
  expect_close(with_positions,
               f64(word).index_select(0, ids) + f64(position).index_select(0, positions),
               "words and positions");
}

TEST_P(Embedding, Backward) {
  const auto [T, W] = shape;
  const auto int_options = at::device(at::kCUDA).dtype(at::kInt);
  const auto dx = random({T, W}) + 0.1;
  Room room(embedding_backward_scratch_bytes(T, W));
  const std::vector<std::pair<const char*, at::Tensor>> choices = {
      {"all different", at::randperm(T, int_options)},
      {"all the same", at::full({T}, 7, int_options)},
      {"two, alternating", at::arange(T, int_options).remainder(2)},
      {"runs about as long as a chunk", at::arange(T, int_options).floor_divide(31)},
      {"runs as long as a chunk", at::arange(T, int_options).floor_divide(32)},
      {"some often, most never", at::randint(40, {T}, int_options).square()},
  };
  for (const auto& [name, ids] : choices) {
    const int64_t n_rows = std::max<int64_t>(T, 1700);
    auto d_table = poisoned({n_rows, W}), again = poisoned({n_rows, W});
    embedding_backward(ids, dx, d_table, room.scratch);
    auto exact = at::zeros({n_rows, W}, options().dtype(at::kDouble));
    exact.index_add_(0, ids, f64(dx));
    expect_close(d_table, exact, name);
    const auto untouched = (at::bincount(ids, {}, n_rows) == 0).view({n_rows, 1});
    EXPECT_FALSE(at::logical_and(untouched, d_table != 0).any().item<bool>()) << name;
    room.bytes.fill_(127);
    embedding_backward(ids, dx, again, room.scratch);
    EXPECT_TRUE(at::equal(d_table, again)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Embedding, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
