#include "models/ops/all_to_all/all_to_all_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

namespace {

/** Calls each(columns of all heads, the rank's own, the part) for queries, keys and values. */
template <class Each>
void for_parts(const AllToAllAttributes& with,
               const at::Tensor& all,
               const at::Tensor& own,
               int rank,
               const Each& each) {
  int64_t in_all = 0, in_own = 0;
  for (const SharedHeads& part : with.parts) {
    const int64_t n = part.n_own(with.n_ranks), first = part.first_of(rank, with.n_ranks);
    at::Tensor of_all = all.narrow(1, in_all + first, n), of_own = own.narrow(1, in_own, n);
    each(of_all, of_own, part);
    in_all += part.columns;
    in_own += n;
  }
}

/** Puts the columns of a rank's heads together. */
void take_heads(const AllToAllAttributes& with, const at::Tensor& all, at::Tensor& own, int rank) {
  for_parts(with, all, own, rank, [](at::Tensor& of_all, at::Tensor& of_own, const SharedHeads&) {
    of_own.copy_(of_all);
  });
}

/** Puts them back, one rank after the other. */
void give_heads(const AllToAllAttributes& with, at::Tensor& all, const at::Tensor& own, int rank) {
  for_parts(with, all, own, rank,
            [&](at::Tensor& of_all, at::Tensor& of_own, const SharedHeads& part) {
              if (part.has_first(rank, with.n_ranks))
                of_all.copy_(of_own);
              else
                of_all.add_(of_own);
            });
}

std::span<std::byte> bytes_of(const at::Tensor& x) {
  return {static_cast<std::byte*>(x.data_ptr()), x.nbytes()};
}

/** Between the tensor of own tokens and all heads, and the tensor of all tokens and own heads. */
void exchange(const OpCall& c, at::Tensor& of_tokens, at::Tensor& of_heads, bool to_heads) {
  const auto& with = c.op.with<AllToAllAttributes>();
  SharingRanks& ranks = c.sharing_ranks();
  const int64_t n_tokens = of_tokens.size(0);
  const ScratchScope scope(c.scratch);
  std::vector<std::span<std::byte>> of_columns, of_rows;  // by rank: empty for this one
  std::vector<at::Tensor> columns;
  for (int rank = 0; rank < with.n_ranks; ++rank) {
    at::Tensor rows = of_heads.narrow(0, rank * n_tokens, n_tokens);
    const bool is_own = rank == ranks.rank();
    at::Tensor& its = columns.emplace_back(
        is_own ? rows : c.scratch.take({n_tokens, of_heads.size(1)}, of_heads.scalar_type()));
    if (to_heads) take_heads(with, of_tokens, its, rank);
    of_columns.push_back(is_own ? std::span<std::byte>() : bytes_of(its));
    of_rows.push_back(is_own ? std::span<std::byte>() : bytes_of(rows));
  }
  const auto& sends = to_heads ? of_columns : of_rows;
  const auto& receives = to_heads ? of_rows : of_columns;
  const std::vector<std::span<const std::byte>> sent(sends.begin(), sends.end());
  ranks.exchange(sent, receives);
  for (int rank = 0; rank < with.n_ranks && !to_heads; ++rank)
    give_heads(with, of_tokens, columns[static_cast<size_t>(rank)], rank);
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
