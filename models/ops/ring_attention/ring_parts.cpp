#include "models/ops/ring_attention/ring_parts.h"

#include <algorithm>

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

namespace {

/** Calls each(begin, end, first element of its mask) for each sequence that is not empty. */
template <class Each>
void for_sequences(const RingShape& shape, const Each& each) {
  int64_t first_mask = 0;
  for (size_t s = 0; s + 1 < shape.cu_seqlens.size(); ++s) {
    const int64_t begin = shape.cu_seqlens[s], end = shape.cu_seqlens[s + 1], n = end - begin;
    if (n > 0) each(begin, end, first_mask);
    first_mask += round_up(shape.n_heads * n * n, kProbsAlignment_elements);
  }
}

/** The rank's rows among the tokens [begin, end) of a sequence. */
SequenceRows rows_of_rank(int64_t begin, int64_t end, int64_t first, int64_t n_tokens) {
  const int64_t from = std::max(begin, first), to = std::min(end, first + n_tokens);
  return {.first = from - first, .n = std::max<int64_t>(to - from, 0), .position = from - begin};
}

}  // namespace

std::vector<RingPart> own_parts(const RingShape& shape, int rank) {
  std::vector<RingPart> parts;
  for_sequences(shape, [&](int64_t begin, int64_t end, int64_t first_mask) {
    const SequenceRows rows = rows_of_rank(begin, end, rank * shape.n_tokens, shape.n_tokens);
    if (rows.n == 0) return;
    parts.push_back(
        {.queries = rows, .keys = rows, .length = end - begin, .first_mask = first_mask});
  });
  return parts;
}

std::optional<RingPart> part_with(const RingShape& shape, int rank, int other) {
  const bool is_later = other > rank;
  if (is_later && shape.causal) return std::nullopt;
  std::optional<RingPart> part;
  for_sequences(shape, [&](int64_t begin, int64_t end, int64_t first_mask) {
    const auto of = [&](int its) {
      return rows_of_rank(begin, end, its * shape.n_tokens, shape.n_tokens);
    };
    const SequenceRows queries = of(rank), keys = of(other);
    if (queries.n == 0 || keys.n == 0) return;
    part =
        RingPart{.queries = queries, .keys = keys, .length = end - begin, .first_mask = first_mask};
  });
  if (!part || shape.window == 0) return part;
  // A query sees window - 1 tokens before it: the first one the last window - gap keys, and so many
  // queries see the last key.
  const int64_t n_most = shape.window - part->gap();
  if (n_most <= 0) return std::nullopt;
  part->queries.n = std::min(part->queries.n, n_most);
  const int64_t n_unseen = std::max<int64_t>(part->keys.n - n_most, 0);
  part->keys.first += n_unseen;
  part->keys.position += n_unseen;
  part->keys.n -= n_unseen;
  return part;
}

}  // namespace ferry::ops
