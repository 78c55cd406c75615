// Column sums, joined q, k, v gradients and first rows against ATen.

#include "tests/models/cuda/kernel_case.h"

namespace ferry::ops::cuda::test {
namespace {

using Rows = KernelTest;

TEST_P(Rows, ColumnSumIsRightAndTheSameAgain) {
  const auto [T, N] = shape;
  const auto x = random({T, N}) + 0.5;
  auto out = poisoned({N}), again = poisoned({N});
  auto room = scratch(column_sum_scratch_bytes(T, N));
  column_sum(stream, type, T, N, x.data_ptr(), out.data_ptr(), room.data_ptr());
  expect_close(out, f64(x).sum(0), "sum");
  room.fill_(127);
  column_sum(stream, type, T, N, x.data_ptr(), again.data_ptr(), room.data_ptr());
  EXPECT_TRUE(at::equal(out, again));
}

TEST_P(Rows, ColumnSumOfNoRowsIsZero) {
  auto out = poisoned({shape.width});
  column_sum(stream, type, 0, shape.width, nullptr, out.data_ptr(), nullptr);
  EXPECT_TRUE(at::equal(out, at::zeros_like(out)));
}

TEST_P(Rows, JoinedGradients) {
  const auto [T, W] = shape;
  const auto dq = random({T, W}), dk = random({T, W}) + 1, dv = random({T, W}) - 1;
  auto dqkv = poisoned({T, 3 * W}), dbias = poisoned({3 * W});
  auto room = scratch(column_sum_scratch_bytes(T, 3 * W));
  join_qkv_gradients(stream, type, T, W, W, dq.data_ptr(), dk.data_ptr(), dv.data_ptr(),
                     dqkv.data_ptr(), dbias.data_ptr(), room.data_ptr());
  EXPECT_TRUE(at::equal(dqkv, at::cat({dq, dk, dv}, 1)));
  expect_close(dbias, f64(dqkv).sum(0), "dbias");
}

TEST_P(Rows, JoinedGradientsOfGroupedHeads) {
  const auto [T, W] = shape;
  const auto dq = random({T, 3 * W}), dk = random({T, W}) + 1, dv = random({T, W}) - 1;
  auto dqkv = poisoned({T, 5 * W}), without = poisoned({T, 5 * W}), dbias = poisoned({5 * W});
  auto room = scratch(column_sum_scratch_bytes(T, 5 * W));
  join_qkv_gradients(stream, type, T, 3 * W, W, dq.data_ptr(), dk.data_ptr(), dv.data_ptr(),
                     dqkv.data_ptr(), dbias.data_ptr(), room.data_ptr());
  join_qkv_gradients(stream, type, T, 3 * W, W, dq.data_ptr(), dk.data_ptr(), dv.data_ptr(),
                     without.data_ptr(), nullptr, nullptr);
  EXPECT_TRUE(at::equal(dqkv, at::cat({dq, dk, dv}, 1)));
  EXPECT_TRUE(at::equal(without, dqkv));
  expect_close(dbias, f64(dqkv).sum(0), "dbias");
}

TEST_P(Rows, ThereAndBack) {
  const auto [T, W] = shape;
  const auto x = random({T, W});
  for (const int64_t n : {int64_t{1}, (T + 2) / 3, T}) {
    const auto rows = at::randperm(T, at::device(at::kCUDA).dtype(at::kInt)).narrow(0, 0, n);
    auto out = poisoned({n, W}), dx = poisoned({T, W});
    gather_rows(stream, type, n, W, x.data_ptr(), rows.const_data_ptr<int32_t>(), out.data_ptr());
    EXPECT_TRUE(at::equal(out, x.index_select(0, rows)));
    scatter_rows(stream, type, T, n, W, out.data_ptr(), rows.const_data_ptr<int32_t>(),
                 dx.data_ptr());
    EXPECT_TRUE(at::equal(dx, at::zeros_like(x).index_copy(0, rows.to(at::kLong), out)));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Rows, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
