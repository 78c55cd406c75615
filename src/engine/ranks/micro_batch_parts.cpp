#include "src/engine/ranks/micro_batch_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"

namespace ferry {

MicroBatchParts::MicroBatchParts(std::span<const HostBatch> micro_batches,
                                 const Sharing& sharing,
                                 bool evaluates)
    : batches_(micro_batches) {
  if (sharing.n_ranks() == 1) return;
  for (const HostBatch& whole : micro_batches)
    for (int rank = 0; rank < sharing.n_ranks(); ++rank) {
      const int64_t first_token = whole.shape.tokens / sharing.sp_size * rank;
      HostBatch& part = own_.emplace_back(
          sharing.sp_size > 1 ? part_of(whole, first_token, sharing.sp_size) : whole);
      if (evaluates || rank == 0) continue;
      part.n_label_items = part.n_end_items = 0;
      if (part.label_weight) part.label_weight = 0;
    }
  batches_ = own_;
}

std::span<const int32_t> MicroBatchParts::keep(std::vector<int32_t> values) {
  return kept_.emplace_back(std::move(values));
}

HostBatch MicroBatchParts::part_of(const HostBatch& whole, int64_t first_token, int sp_size) {
  FERRY_CHECK(whole.others.empty() && !whole.generates, "tokens of several streams are shared");
  HostBatch part = whole;
  part.shape = part_of_tokens(whole.shape, sp_size);
  const int64_t n_tokens = part.shape.tokens;
  const auto first = static_cast<size_t>(first_token), n = static_cast<size_t>(n_tokens);
  for (auto* values : {&part.input_ids, &part.type_ids, &part.position_ids})
    if (!values->empty()) *values = values->subspan(first, n);
  part.labels = whole.labels.subspan(first * sizeof(int32_t), n * sizeof(int32_t));
  // Sequences that lie elsewhere are empty here.
  std::vector<int32_t> begins;
  for (const int32_t begin : whole.cu_seqlens)
    begins.push_back(static_cast<int32_t>(std::clamp<int64_t>(begin - first_token, 0, n_tokens)));
  part.cu_seqlens = keep(std::move(begins));
  if (whole.label_rows) {
    std::vector<int32_t> rows;
    for (const int32_t row : *whole.label_rows)
      if (row >= first_token && row < first_token + n_tokens)
        rows.push_back(static_cast<int32_t>(row - first_token));
    part.label_rows = keep(std::move(rows));
  }
  part.others.push_back({.n_seqs = whole.n_seqs, .cu_seqlens = whole.cu_seqlens});
  return part;
}

}  // namespace ferry
