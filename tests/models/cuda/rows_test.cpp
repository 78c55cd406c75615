// Column sums, joined q, k, v gradients and first rows against ATen.

#include "models/ops/rows/rows.h"
#include "models/ops/attention/join_gradients.h"
#include "models/ops/dispatch.h"
#include "tests/models/cuda/kernel_case.h"

namespace ferry::ops::cuda::test {
namespace {

using Rows = KernelTest;

TEST_P(Rows, ColumnSumIsRightAndTheSameAgain) {
  const auto [T, N] = shape;
  const auto x = random({T, N}) + 0.5;
  auto out = poisoned({N}), again = poisoned({N});
  Room room(column_sum_scratch_bytes(T, N));
  column_sum(x, out, room.scratch);
  expect_close(out, f64(x).sum(0), "sum");
  room.bytes.fill_(127);
  column_sum(x, again, room.scratch);
  EXPECT_TRUE(at::equal(out, again));
}

TEST_P(Rows, ColumnSumOfNoRowsIsZero) {
  auto out = poisoned({shape.width});
  Room room(column_sum_scratch_bytes(1, shape.width));
  column_sum(poisoned({0, shape.width}), out, room.scratch);
  EXPECT_TRUE(at::equal(out, at::zeros_like(out)));
}

TEST_P(Rows, JoinedGradientsOfAllAndOfGroupedHeads) {
  const auto [T, W] = shape;
  for (const int64_t q_width : {W, 3 * W}) {
    const int64_t width = q_width + 2 * W;
    const auto dq = random({T, q_width}), dk = random({T, W}) + 1, dv = random({T, W}) - 1;
    auto dqkv = poisoned({T, width}), without = poisoned({T, width}), dbias = poisoned({width});
    const Room room(column_sum_scratch_bytes(T, width));
    JoinQkvGradients its = {.type = type,
                            .T = T,
                            .q_width = q_width,
                            .kv_width = W,
                            .dq = dq.data_ptr(),
                            .dk = dk.data_ptr(),
                            .dv = dv.data_ptr(),
                            .dqkv = dqkv.data_ptr(),
                            .dbias = dbias.data_ptr()};
    kCudaAttention.join_qkv_gradients(its, launch_on(dq, room.bytes.data_ptr()));
    its.dqkv = without.data_ptr();
    its.dbias = nullptr;
    kCudaAttention.join_qkv_gradients(its, launch_on(dq));
    EXPECT_TRUE(at::equal(dqkv, at::cat({dq, dk, dv}, 1)));
    EXPECT_TRUE(at::equal(without, dqkv));
    expect_close(dbias, f64(dqkv).sum(0), "dbias");
  }
}

TEST_P(Rows, ThereAndBack) {
  const auto [T, W] = shape;
  const auto x = random({T, W});
  for (const int64_t n : {int64_t{1}, (T + 2) / 3, T}) {
    const auto rows = at::randperm(T, at::device(at::kCUDA).dtype(at::kInt)).narrow(0, 0, n);
    auto out = poisoned({n, W}), dx = poisoned({T, W});
    gather_rows(x, rows, out);
    EXPECT_TRUE(at::equal(out, x.index_select(0, rows)));
    scatter_rows(out, rows, dx);
    EXPECT_TRUE(at::equal(dx, at::zeros_like(x).index_copy(0, rows.to(at::kLong), out)));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Rows, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
