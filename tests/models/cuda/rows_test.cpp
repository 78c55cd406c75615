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

TEST_P(Rows, FirstRowsThereAndBack) {
  const auto [T, W] = shape;
  const std::vector<int32_t> starts = T > 4 ? std::vector<int32_t>{0, 1, 4, static_cast<int32_t>(T)}
                                            : std::vector<int32_t>{0, static_cast<int32_t>(T)};
  const auto n_seqs = static_cast<int64_t>(starts.size()) - 1;
  const auto cu_seqlens = at::tensor(starts, at::kInt).to(at::kCUDA);
  const auto first = cu_seqlens.slice(0, 0, n_seqs).to(at::kLong);
  const auto x = random({T, W});
  auto out = poisoned({n_seqs, W}), dx = poisoned({T, W});
  gather_first_rows(stream, type, n_seqs, W, x.data_ptr(), cu_seqlens.const_data_ptr<int32_t>(),
                    out.data_ptr());
  EXPECT_TRUE(at::equal(out, x.index_select(0, first)));
  scatter_first_rows(stream, type, T, n_seqs, W, out.data_ptr(),
                     cu_seqlens.const_data_ptr<int32_t>(), dx.data_ptr());
  EXPECT_TRUE(at::equal(dx, at::zeros_like(x).index_copy(0, first, out)));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Rows, all_cases(), case_name);

}  // namespace
}  // namespace ferry::ops::cuda::test
