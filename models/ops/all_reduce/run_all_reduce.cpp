#include <ATen/ops/sum.h>

#include "models/ops/all_reduce/all_reduce_op.h"
#include "models/ops/run.h"

namespace ferry::ops {
namespace {

/** Each rank sends all that it has found: few ranks share a layer, and all add in the same order.
 */
void sum_over_ranks(const OpCall& c, const at::Tensor& mine, at::Tensor& sum) {
  SharingRanks* const ranks = c.batch.sharing_ranks;
  FERRY_CHECK(ranks && ranks->world() == c.target.sharing.n_ranks(),
              "a block of {} ranks runs alone", c.target.sharing.n_ranks());
  const ScratchScope scope(c.scratch);
  const int64_t n = ranks->world(), rank = ranks->rank();
  at::Tensor all = c.scratch.take({n, mine.size(0), mine.size(1)}, mine.scalar_type());
  all.select(0, rank).copy_(mine);
  const auto bytes_of = [](const at::Tensor& x) {
    return std::span(static_cast<std::byte*>(x.data_ptr()), x.nbytes());
  };
  std::vector<std::span<const std::byte>> sends;
  std::vector<std::span<std::byte>> receives;
  for (int64_t peer = 0; peer < n; ++peer) {
    const bool is_mine = peer == rank;
    sends.push_back(is_mine ? std::span<std::byte>() : bytes_of(all.select(0, rank)));
    receives.push_back(is_mine ? std::span<std::byte>() : bytes_of(all.select(0, peer)));
  }
  ranks->exchange(sends, receives);
  at::sum_out(sum, all, /*dim=*/0);
}

}  // namespace

void run_all_reduce(const OpCall& c) {
  const auto o = c.operands<AllReduceValues>();
  sum_over_ranks(c, o.x, o.y);
}

void run_all_reduce_grad(const OpCall& c) {
  if (c.part == Part::backward) {
    const auto o = c.operands<AllReduceGrads>();
    return sum_over_ranks(c, o.dy, o.dx);
  }
  const auto o = c.operands<AllReduceValues>();
  if (o.y->const_data_ptr() != o.x->const_data_ptr()) o.y->copy_(*o.x);
}

}  // namespace ferry::ops
