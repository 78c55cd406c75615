// Every pair of a query and a key that it sees is in one part of one rank, and no part has rows
// that see nothing or are seen by none.

#include "models/ops/ring_attention/ring_parts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace ferry::ops {
namespace {

struct Case {
  std::vector<int32_t> cu_seqlens = {0};
  int n_ranks = 2;
  RingShape shape;
};

bool sees(const RingShape& shape, int64_t query, int64_t key) {
  return (!shape.causal || key <= query) && (shape.window == 0 || query - key < shape.window);
}

/** Pairs of tokens of the whole micro-batch, each with the times that parts have it. */
using Pairs = std::map<std::pair<int64_t, int64_t>, int>;

Pairs pairs_by_definition(const Case& its) {
  Pairs pairs;
  for (size_t s = 0; s + 1 < its.cu_seqlens.size(); ++s)
    for (int64_t q = its.cu_seqlens[s]; q < its.cu_seqlens[s + 1]; ++q)
      for (int64_t k = its.cu_seqlens[s]; k < its.cu_seqlens[s + 1]; ++k)
        if (sees(its.shape, q, k)) pairs[{q, k}] = 1;
  return pairs;
}

void add_part(const Case& its, const RingPart& part, int rank, int other, Pairs& pairs) {
  const int64_t first_query = rank * its.shape.n_tokens + part.queries.first,
                first_key = other * its.shape.n_tokens + part.keys.first;
  ASSERT_LE(part.queries.first + part.queries.n, its.shape.n_tokens);
  ASSERT_LE(part.keys.first + part.keys.n, its.shape.n_tokens);
  EXPECT_EQ(first_query - part.queries.position, first_key - part.keys.position);
  std::set<int64_t> queries, keys;
  for (int64_t q = first_query; q < first_query + part.queries.n; ++q)
    for (int64_t k = first_key; k < first_key + part.keys.n; ++k) {
      if (!sees(its.shape, q, k)) continue;
      ++pairs[{q, k}];
      queries.insert(q);
      keys.insert(k);
    }
  EXPECT_EQ(std::ssize(queries), part.queries.n) << rank << " of " << other;
  EXPECT_EQ(std::ssize(keys), part.keys.n) << rank << " of " << other;
}

TEST(RingParts, HaveEachPairThatIsSeenOnce) {
  std::mt19937 random(3);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  for (int round = 0; round < 400; ++round) {
    Case its;
    its.n_ranks = 2 + below(4);
    const int n_tokens = 1 + below(12), n_all = n_tokens * its.n_ranks;
    while (its.cu_seqlens.back() < n_all)
      its.cu_seqlens.push_back(std::min(n_all, its.cu_seqlens.back() + below(n_all + 1)));
    const bool is_causal = below(2) == 1;
    its.shape = {.cu_seqlens = its.cu_seqlens,
                 .n_tokens = n_tokens,
                 .n_heads = 3,
                 .causal = is_causal,
                 .window = is_causal ? below(2) * (1 + below(n_all)) : 0};
    Pairs found;
    for (int rank = 0; rank < its.n_ranks; ++rank) {
      for (const RingPart& part : own_parts(its.shape, rank))
        add_part(its, part, rank, rank, found);
      for (int other = 0; other < its.n_ranks; ++other)
        if (const auto part = other == rank ? std::nullopt : part_with(its.shape, rank, other))
          add_part(its, *part, rank, other, found);
    }
    EXPECT_EQ(found, pairs_by_definition(its)) << "round " << round;
    if (::testing::Test::HasFailure()) return;
  }
}

/** The element of a mask that goes with a pair is the element of one rank's mask. */
TEST(RingParts, KnowTheirPlaceInTheMaskOfTheWhole) {
  const std::vector<int32_t> cu_seqlens = {0, 3, 3, 8};
  const RingShape shape = {.cu_seqlens = cu_seqlens, .n_tokens = 4, .n_heads = 2};
  const auto part = part_with(shape, 1, 0);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->length, 5);
  EXPECT_EQ(part->first_mask, 256) << "after the first sequence, rounded up";
  EXPECT_EQ(part->queries.position, 1);
  EXPECT_EQ(part->keys.first, 3);
  EXPECT_EQ(part->keys.n, 1);
  EXPECT_EQ(part->gap(), 1);
}

}  // namespace
}  // namespace ferry::ops
