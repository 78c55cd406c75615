#include <ATen/ops/add.h>
#include <ATen/ops/sum.h>

#include "models/ops/all_reduce/all_reduce.h"
#include "models/ops/all_reduce/all_reduce_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

at::Tensor gather(SharingRanks& ranks, const at::Tensor& mine, Scratch& scratch) {
  const int64_t n = ranks.world(), rank = ranks.rank();
  std::vector<int64_t> shape = {n};
  shape.insert(shape.end(), mine.sizes().begin(), mine.sizes().end());
  at::Tensor all = scratch.take(shape, mine.scalar_type());
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
  ranks.exchange(sends, receives);
  return all;
}

void all_reduce(SharingRanks& ranks, const at::Tensor& mine, at::Tensor& sum, Scratch& scratch) {
  const ScratchScope scope(scratch);
  const at::Tensor all = gather(ranks, mine, scratch);
  if (all.size(0) == 2)
    at::add_out(sum, all[0], all[1]);
  else
    at::sum_out(sum, all, /*dim=*/0);
}

void run_all_reduce(const OpCall& c) {
  const auto o = c.operands<AllReduceValues>();
  all_reduce(c.sharing_ranks(), o.x, o.y, c.scratch);
}

void run_all_reduce_grad(const OpCall& c) {
  if (c.part == Part::backward) {
    const auto o = c.operands<AllReduceGrads>();
    return all_reduce(c.sharing_ranks(), o.dy, o.dx, c.scratch);
  }
  const auto o = c.operands<AllReduceValues>();
  if (o.y->const_data_ptr() != o.x->const_data_ptr()) o.y->copy_(*o.x);
}

}  // namespace ferry::ops
