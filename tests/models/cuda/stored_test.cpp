// Tiles of stored matrices: the CPU's bits.

#include "models/ops/linear/stored.h"
#include "tests/models/cuda/kernel_case.h"
#include "tests/models/model_runner.h"

namespace ferry::ops::cuda::test {
namespace {

using Stored = KernelTest;

TEST_P(Stored, TilesHaveTheBitsOfTheCpu) {
  const auto [rows, width] = shape;
  std::vector<MatrixStorage> storages;
  for (const Storage storage :
       {Storage::int8, Storage::nf4, Storage::nf4_nested, Storage::q8_0, Storage::q4_0,
        Storage::q4_1, Storage::q4_k, Storage::q6_k, Storage::mxfp4, Storage::bf16, Storage::f32})
    storages.emplace_back(storage);
  if (rows > 1) storages.push_back(MatrixStorage({{Storage::q4_k, 1}, {Storage::q6_k, rows - 1}}));
  for (const MatrixStorage& storage : storages) {
    // Tiles of 16 bytes an access, and of rows that have an odd number of values.
    int64_t columns = width;
    for (const RowStorage& part : storage.parts(rows))
      columns = round_up(columns, columns_multiple(part.storage));
    const StoredParts matrix = stored_parts(storage, rows, columns, type);
    const at::Tensor bytes = ferry::test::stored(matrix, at::randn({rows, columns}) * 0.02);
    for (const int64_t first : {int64_t{0}, columns / 128 * 64}) {
      at::Tensor expected = at::empty({rows - rows / 2, columns - first}, torch_type(type));
      at::Tensor tile = poisoned(expected.sizes());
      read_tile(matrix, bytes, rows / 2, first, expected);
      read_tile(matrix, bytes.cuda(), rows / 2, first, tile);
      EXPECT_TRUE(at::equal(tile.cpu(), expected)) << storage.name() << " from " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Stored, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
