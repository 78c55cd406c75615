// Tiles of stored matrices: the CPU's bits.

#include "models/ops/linear/stored.h"
#include "tests/models/cuda/kernel_case.h"
#include "tests/models/model_runner.h"

namespace ferry::ops::cuda::test {
namespace {

using Stored = KernelTest;

TEST_P(Stored, TilesHaveTheBitsOfTheCpu) {
  const auto [rows, width] = shape;
  for (const Storage storage : {Storage::int8, Storage::nf4, Storage::bf16, Storage::f32}) {
    // Tiles of 16 bytes an access, and of rows that have an odd number of values.
    const int64_t columns = storage == Storage::nf4 ? round_up(width, 64) : width;
    const StoredMatrix matrix = stored_matrix(storage, rows, columns, type);
    const at::Tensor bytes = ferry::test::stored(matrix, at::randn({rows, columns}) * 0.02);
    for (const int64_t first : {int64_t{0}, columns / 128 * 64}) {
      at::Tensor expected = at::empty({rows - rows / 2, columns - first}, torch_type(type));
      at::Tensor tile = poisoned(expected.sizes());
      read_tile(matrix, bytes, rows / 2, first, expected);
      read_tile(matrix, bytes.cuda(), rows / 2, first, tile);
      EXPECT_TRUE(at::equal(tile.cpu(), expected)) << name_of(storage) << " from " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Stored, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
