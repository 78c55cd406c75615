#include "models/ops/all_to_all/all_to_all_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

namespace {

/** Columns of the heads of one rank, in memory of their own, from or into those of all heads. */
void copy_heads(
    const AllToAllAttributes& with, at::Tensor& all, at::Tensor& own, int rank, bool is_into_own) {
  int64_t in_all = 0, in_own = 0;
  for (const int64_t columns : with.parts) {
    const int64_t n = columns / with.n_ranks;
    at::Tensor of_all = all.narrow(1, in_all + rank * n, n), of_own = own.narrow(1, in_own, n);
    if (is_into_own)
      of_own.copy_(of_all);
    else
      of_all.copy_(of_own);
    in_all += columns;
    in_own += n;
  }
}

std::span<std::byte> bytes_of(at::Tensor& x) {
  return {static_cast<std::byte*>(x.data_ptr()), x.nbytes()};
}

/** Between the tensor of own tokens and all heads, and the tensor of all tokens and own heads. */
void exchange(const OpCall& c, at::Tensor& of_tokens, at::Tensor& of_heads, bool to_heads) {
  const auto& with = c.op.with<AllToAllAttributes>();
  SharingRanks& ranks = c.sharing_ranks();
  const int64_t n_tokens = of_tokens.size(0);
  const ScratchScope scope(c.scratch);
  std::vector<std::span<std::byte>> of_columns, of_rows;  // by rank: empty is its own
  std::vector<at::Tensor> columns;
  for (int rank = 0; rank < with.n_ranks; ++rank) {
    at::Tensor rows = of_heads.narrow(0, rank * n_tokens, n_tokens);
    if (rank == ranks.rank()) {
      copy_heads(with, of_tokens, rows, rank, to_heads);
      columns.emplace_back();
      of_columns.emplace_back();
      of_rows.emplace_back();
      continue;
    }
    at::Tensor& its =
        columns.emplace_back(c.scratch.take({n_tokens, of_heads.size(1)}, of_heads.scalar_type()));
    if (to_heads) copy_heads(with, of_tokens, its, rank, /*is_into_own=*/true);
    of_columns.push_back(bytes_of(its));
    of_rows.push_back(bytes_of(rows));
  }
  const auto& sends = to_heads ? of_columns : of_rows;
  const auto& receives = to_heads ? of_rows : of_columns;
  const std::vector<std::span<const std::byte>> sent(sends.begin(), sends.end());
  ranks.exchange(sent, receives);
  for (int rank = 0; rank < with.n_ranks && !to_heads; ++rank)
    if (rank != ranks.rank())
      copy_heads(with, of_tokens, columns[static_cast<size_t>(rank)], rank, /*is_into_own=*/false);
}

}  // namespace

void run_all_to_all(const OpCall& c) {
  const bool to_heads = c.op.with<AllToAllAttributes>().to_heads;
  if (c.part == Part::forward) {
    const auto o = c.operands<AllToAllValues>();
    return to_heads ? exchange(c, o.x, o.y, true) : exchange(c, o.y, o.x, false);
  }
  const auto o = c.operands<AllToAllGrads>();
  return to_heads ? exchange(c, o.dx, o.dy, false) : exchange(c, o.dy, o.dx, true);
}

}  // namespace ferry::ops
