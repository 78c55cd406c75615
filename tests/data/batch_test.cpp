#include "src/data/batch.h"

#include <gmock/gmock.h>

#include <atomic>
#include <set>
#include <stdexcept>

#include "src/data/step_plan.h"
#include "src/data/tokens/token_writer.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TokenizedDataset three_samples() {
  MemoryWriter tokens({.vocab_size = 1000});
  tokens.add_example({});
  tokens.add({.ids = {101, 7, 102}, .labels = {1}});
  tokens.add_example({});
  tokens.add_example({});
  tokens.add({.ids = {101, 8, 9, 102, 5, 102},
              .type_ids = {0, 0, 0, 0, 1, 1},
              .labels = {0, 4},
              .truncated = true});
  tokens.add({.ids = {101, 102}, .type_ids = {0, 0}, .values = {0.5f}});
  return TokenizedDataset(tokens.finish());
}

TEST(TokenizedDataset, KeepsSlicesAndCountsItsBytes) {
  const TokenizedDataset dataset = three_samples();
  EXPECT_EQ(dataset.size(), 3);
  EXPECT_EQ(dataset.n_tokens(), 11);
  EXPECT_EQ(dataset.n_truncated(), 1);
  EXPECT_THAT(dataset.lengths(), ElementsAre(3, 6, 2));
  EXPECT_THAT(dataset.ids(1), ElementsAre(101, 8, 9, 102, 5, 102));
  EXPECT_THAT(dataset.type_ids(0), ElementsAre(0, 0, 0));
  EXPECT_THAT(dataset.type_ids(1), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(dataset.labels(0), ElementsAre(1));
  EXPECT_THAT(dataset.labels(1), ElementsAre(0, 4));
  EXPECT_THAT(dataset.labels(2), ElementsAre());
  EXPECT_THAT(dataset.values(2), ElementsAre(0.5f));
  EXPECT_EQ(dataset.example_of(1), 2);
  EXPECT_FALSE(dataset.has_labels());
  EXPECT_EQ(dataset.n_examples(), 3);
  EXPECT_EQ(dataset.max_type_id(), 1);
  // Ids of two bytes, and types where they are not all 0.
  EXPECT_GE(dataset.bytes(), 11 * 2 + 6 + 4 * 4 + 3 * 40);
}

/** Sequences of these lengths; the tokens of each tell which it is and where. */
TokenizedDataset of_lengths(const std::vector<int>& lengths) {
  std::vector<TokenizedExample> sequences;
  for (size_t i = 0; i < lengths.size(); ++i) {
    TokenizedExample& sequence =
        sequences.emplace_back(TokenizedExample{.labels = {static_cast<int32_t>(i)}});
    for (int t = 0; t < lengths[i]; ++t) {
      sequence.ids.push_back(static_cast<int32_t>(1000 * i) + t);
      sequence.type_ids.push_back(t % 2);
    }
  }
  return dataset_of(sequences);
}

TEST(TokenizedDataset, PacksGoWhereLeastRoomIsLeft) {
  const TokenizedDataset plain = of_lengths({6, 3, 8, 2, 10, 1, 3, 4});
  const TokenizedDataset packed = plain.packed(10);
  // 6 and 3, which leave 1; 8 and 2; 10; then 1 ends the first, and 3 and 4 are one.
  EXPECT_THAT(packed.lengths(), ElementsAre(10, 10, 10, 7));
  EXPECT_THAT(packed.pack_sizes(), ElementsAre(3, 2, 1, 2));
  EXPECT_THAT(packed.sequence_lengths(), ElementsAre(6, 3, 1, 8, 2, 10, 3, 4));
  EXPECT_EQ(packed.size(), 4);
  EXPECT_EQ(packed.n_sequences(), 8);
  EXPECT_EQ(packed.n_tokens(), plain.n_tokens());
  EXPECT_EQ(packed.n_tokens(3), 7);
  for (int64_t i = 0; i < packed.n_sequences(); ++i) {
    const int64_t from = packed.example_of(i);
    EXPECT_THAT(packed.labels(i), ElementsAre(from));
    EXPECT_EQ(packed.ids(i), plain.ids(from));
    EXPECT_EQ(packed.type_ids(i), plain.type_ids(from));
  }
  EXPECT_NE(packed.fingerprint(), plain.fingerprint());
  EXPECT_EQ(packed.fingerprint(), plain.packed(10).fingerprint());
  EXPECT_FALSE(plain.is_packed());
  EXPECT_EQ(TokenizedDataset().packed(10).size(), 0);
}

TEST(TokenizedDataset, PacksHoldEverySequenceOnce) {
  std::vector<int> lengths;
  for (int i = 0; i < 5000; ++i)
    lengths.push_back(1 + i * 7919 % 511);
  const TokenizedDataset packed = of_lengths(lengths).packed(512);
  std::vector<bool> seen(lengths.size());
  int64_t first_of_last = -1;
  for (int64_t sample = 0; sample < packed.size(); ++sample) {
    EXPECT_LE(packed.n_tokens(sample), 512);
    const auto [begin, end] = packed.sequences_of(sample);
    EXPECT_GT(packed.example_of(begin), first_of_last);
    first_of_last = packed.example_of(begin);
    for (int64_t i = begin; i < end; ++i) {
      EXPECT_FALSE(seen[static_cast<size_t>(packed.example_of(i))]);
      seen[static_cast<size_t>(packed.example_of(i))] = true;
    }
  }
  EXPECT_THAT(seen, Each(true));
  EXPECT_GT(static_cast<double>(packed.n_tokens()) / static_cast<double>(packed.size()),
            0.95 * 512);
}

TEST(Collate, PackedSequencesAreLaidAsUnpackedOnes) {
  const TokenizedDataset plain = of_lengths({6, 3, 8, 2, 10, 1, 3, 4});
  const TokenizedDataset packed = plain.packed(10);
  const std::vector<int64_t> packs = {3, 0}, sequences = {6, 7, 0, 1, 5}, sizes = {64};
  const MicroBatch a = collate(packed, packs, sizes, 0), b = collate(plain, sequences, sizes, 0);
  EXPECT_EQ(a.input_ids, b.input_ids);
  EXPECT_EQ(a.type_ids, b.type_ids);
  EXPECT_EQ(a.position_ids, b.position_ids);
  EXPECT_TRUE(std::ranges::equal(std::span(a.cu_seqlens).first(b.cu_seqlens.size()), b.cu_seqlens));
  EXPECT_EQ(a.max_len, 6);
  EXPECT_EQ(a.n_real_seqs, 5);
  EXPECT_EQ(a.n_real_tokens, b.n_real_tokens);
  EXPECT_THAT(a.samples, ElementsAre(6, 7, 0, 1, 2));  // the places in its own dataset
}

TEST(Collate, PackedMicroBatchesHaveFewSequenceCounts) {
  EXPECT_EQ(round_up_sequences(0), 0);
  std::set<int64_t> counts;
  for (int64_t n = 1; n <= 100; ++n) {
    const int64_t count = round_up_sequences(n);
    EXPECT_GE(count, n);
    EXPECT_LE(count, n + n / 2);
    counts.insert(count);
  }
  EXPECT_THAT(counts, ElementsAre(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128));

  // 7 sequences of 10 tokens and a tail of 54 in pieces of 10.
  const TokenizedDataset packed = of_lengths(std::vector<int>(7, 10)).packed(70);
  const std::vector<int64_t> first = {0}, sizes = {124};
  const MicroBatch batch = collate(packed, first, sizes, 0);
  EXPECT_EQ(batch.n_real_seqs, 7);
  EXPECT_EQ(batch.n_seqs(), 16);
  EXPECT_EQ(batch.cu_seqlens[13], 124);
  for (size_t i = 13; i <= 16; ++i)
    EXPECT_EQ(batch.cu_seqlens[i], 124);
  EXPECT_EQ(batch.n_tokens(), 124);
  EXPECT_EQ(batch.position_ids.size(), 124u);
}

TEST(TokenizeDataset, IsTheSameOnAnyNumberOfThreads) {
  Dataset dataset;
  for (int i = 0; i < 10'000; ++i)
    dataset.examples.push_back({.text = std::to_string(i)});
  // Every third example has two samples.
  const Tokenize tokenize = [](const Example& example, std::vector<TokenizedExample>& out) {
    const int i = std::stoi(example.text);
    for (int n = 0; n < (i % 3 == 0 ? 2 : 1); ++n)
      out.push_back({.ids = std::vector<int32_t>(1 + example.text.size(), i)});
  };
  const auto one = tokenize_dataset(dataset, tokenize);
  const auto three = tokenize_dataset(dataset, tokenize, 3);
  ASSERT_EQ(one.size(), 13'334);
  ASSERT_EQ(three.size(), 13'334);
  for (int64_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one.ids(i)[0], one.example_of(i));
    ASSERT_EQ(one.example_of(i), three.example_of(i));
    ASSERT_EQ(one.ids(i), three.ids(i));
  }
}

TEST(TokenizeDataset, RethrowsAndRefusesEmptyResults) {
  Dataset dataset;
  for (int i = 0; i < 100; ++i)
    dataset.examples.push_back({.text = "x"});
  std::atomic<int> calls = 0;
  const Tokenize fails = [&](const Example&, std::vector<TokenizedExample>& out) {
    if (++calls == 50) throw std::runtime_error("the fiftieth");
    out.push_back({.ids = {1}});
  };
  EXPECT_THROW(tokenize_dataset(dataset, fails, 4), std::runtime_error);
  const Tokenize blank = [](const Example&, std::vector<TokenizedExample>& out) {
    out.emplace_back();
  };
  EXPECT_THAT(test::error_of([&] { tokenize_dataset(dataset, blank, 1); }),
              ::testing::HasSubstr("example 1 has no tokens"));
}

TEST(Collate, LaysSequencesEndToEndWithATailWithoutLoss) {
  const TokenizedDataset dataset = three_samples();
  const std::vector<int64_t> samples = {2, 1}, sizes = {8, 18, 32};
  const MicroBatch batch =
      collate(dataset, samples, sizes, /*pad_id=*/0);  // 8 tokens: fits the first size exactly
  EXPECT_THAT(batch.input_ids, ElementsAre(101, 102, 101, 8, 9, 102, 5, 102));
  EXPECT_THAT(batch.type_ids, ElementsAre(0, 0, 0, 0, 0, 0, 1, 1));
  EXPECT_THAT(batch.position_ids, ElementsAre(0, 1, 0, 1, 2, 3, 4, 5));
  EXPECT_THAT(batch.cu_seqlens, ElementsAre(0, 2, 8));
  EXPECT_EQ(batch.max_len, 6);
  EXPECT_THAT(batch.samples, ElementsAre(2, 1));

  MicroBatch all = batch;  // its memory is used again, its content is not
  collate(dataset, std::vector<int64_t>{0, 1, 2}, sizes, /*pad_id=*/3, all);
  EXPECT_EQ(all.n_tokens(), 18);
  EXPECT_EQ(all.n_real_tokens, 11);
  EXPECT_EQ(all.n_real_seqs, 3);
  EXPECT_EQ(all.n_seqs(), 5);
  EXPECT_THAT(all.cu_seqlens, ElementsAre(0, 3, 9, 11, 17, 18));  // the tail in pieces of at most 6
  EXPECT_EQ(all.max_len, 6);
  EXPECT_THAT(std::span(all.input_ids).subspan(11), Each(3));
  EXPECT_THAT(std::span(all.type_ids).subspan(11), Each(0));
  EXPECT_THAT(std::span(all.position_ids).subspan(11), ElementsAre(0, 1, 2, 3, 4, 5, 0));
  EXPECT_EQ(collate(dataset, samples, {}, 0).n_tokens(), 8);
}

TEST(Collate, MarksThePositionsOfBatchesWithALongText) {
  constexpr int32_t kMark = 1 << 20;
  const TokenizedDataset dataset = three_samples();  // of 3, 6 and 2 tokens
  MicroBatch batch;
  const auto positions = [&](std::vector<int64_t> samples, const FirstPosition& first) {
    collate(dataset, samples, std::vector<int64_t>{12}, 0, batch, 0, first);
    return batch.position_ids;
  };
  // A step of two micro-batches is one batch: the text of 6 tokens makes the other one long.
  const std::vector<int64_t> step[] = {{0}, {1, 2}}, of_short_texts[] = {{0}, {2}};
  EXPECT_THAT(positions({0}, positions_in_batch(dataset, step, 5, kMark)),
              ElementsAre(kMark, kMark + 1, kMark + 2, 0, 1, 2, 0, 1, 2, 0, 1, 2));
  EXPECT_EQ(positions({0}, positions_in_batch(dataset, of_short_texts, 5, kMark)),
            positions({0}, {}));
  EXPECT_EQ(positions({0}, positions_in_batch(dataset, step, 6, kMark)), positions({0}, {}));
  EXPECT_FALSE(positions_in_batch(dataset, step, 0, kMark));

  // In an evaluation so do its neighbours in order, whatever the micro-batches are.
  std::vector<int> lengths(static_cast<size_t>(2 * kSamplesSeenTogether), 2);
  lengths[5] = 9;
  const TokenizedDataset many = of_lengths(lengths);
  const FirstPosition in_order = positions_in_order(many, 8, kMark);
  EXPECT_EQ(in_order(0), kMark);
  EXPECT_EQ(in_order(kSamplesSeenTogether - 1), kMark);
  EXPECT_EQ(in_order(kSamplesSeenTogether), 0);
  EXPECT_EQ(in_order(5), kMark) << "whatever was asked before";
  EXPECT_FALSE(positions_in_order(many, 0, kMark));
}

TEST(CollateDeathTest, ASizeTooSmallIsOurBug) {
  const TokenizedDataset dataset = three_samples();
  EXPECT_DEATH(collate(dataset, std::vector<int64_t>{0, 1}, std::vector<int64_t>{8}, 0),
               "a micro-batch of 9 tokens, the largest size is 8");
}

MicroBatch long_batch() {
  std::vector<int32_t> ids(5000);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = 1000 + static_cast<int32_t>(i % 500);
  ids.front() = 101;
  ids.back() = 102;
  const TokenizedDataset dataset = dataset_of(std::vector<TokenizedExample>(4, {.ids = ids}));
  return collate(dataset, std::vector<int64_t>{0, 1, 2, 3}, std::vector<int64_t>{21'000}, 0);
}

TEST(MaskTokens, HidesTheSharesOfBertAndNeverSpecialTokens) {
  const MaskOptions options{
      .mask_id = 103, .vocab_size = 30522, .special_ids = {0, 100, 101, 102, 103}};
  const MicroBatch before = long_batch();
  MicroBatch batch = before;
  mask_tokens(batch, options, {.seed = 1, .step = 2, .micro_batch = 3});
  int64_t n_hidden = 0, n_masked = 0, n_kept = 0;
  std::vector<int32_t> rows;
  ASSERT_EQ(batch.labels.size(), batch.input_ids.size());
  for (size_t i = 0; i < batch.input_ids.size(); ++i) {
    if (batch.labels[i] == kNoLabel) {
      ASSERT_EQ(batch.input_ids[i], before.input_ids[i]);
      continue;
    }
    ASSERT_LT(static_cast<int64_t>(i), batch.n_real_tokens);
    ASSERT_EQ(batch.labels[i], before.input_ids[i]);
    ASSERT_GE(before.input_ids[i], 1000);
    ASSERT_GE(batch.input_ids[i], 0);
    ASSERT_LT(batch.input_ids[i], 30522);
    ++n_hidden;
    rows.push_back(static_cast<int32_t>(i));
    n_masked += batch.input_ids[i] == 103;
    n_kept += batch.input_ids[i] == before.input_ids[i];
  }
  EXPECT_EQ(batch.n_label_items, n_hidden);
  EXPECT_EQ(batch.label_rows, rows);
  // Binomial, five standard deviations: 0.15 of 19,992; 0.8 and 0.1 of those.
  EXPECT_NEAR(static_cast<double>(n_hidden), 0.15 * 19'992, 5 * std::sqrt(0.15 * 0.85 * 19'992));
  const auto n = static_cast<double>(n_hidden);
  EXPECT_NEAR(static_cast<double>(n_masked), 0.8 * n, 5 * std::sqrt(0.16 * n));
  EXPECT_NEAR(static_cast<double>(n_kept), 0.1 * n, 5 * std::sqrt(0.09 * n));
}

TEST(MaskTokens, TheKeyDecides) {
  const MaskOptions options{.mask_id = 103, .vocab_size = 30522, .special_ids = {101, 102}};
  auto labels = [&](MaskKey key) {
    MicroBatch batch = long_batch();
    mask_tokens(batch, options, key);
    return std::pair(batch.labels, batch.input_ids);
  };
  const auto first = labels({1, 2, 3});
  EXPECT_EQ(labels({1, 2, 3}), first);
  for (const MaskKey& other :
       {MaskKey{2, 2, 3}, MaskKey{1, 3, 3}, MaskKey{1, 2, 4}, MaskKey{1, 3, 2}})
    EXPECT_NE(labels(other).first, first.first);
}

TEST(LabelNextTokens, ShiftsWithinEachSequenceAndLeavesTheTail) {
  const TokenizedDataset dataset =
      dataset_of(std::vector<TokenizedExample>{{.ids = {5, 6, 7}}, {.ids = {8}}, {.ids = {9, 10}}});
  MicroBatch batch = collate(dataset, std::vector<int64_t>{0, 1, 2}, std::vector<int64_t>{9}, 1);
  batch.label_rows = {3};  // of an earlier use
  label_next_tokens(batch);
  const std::vector<int32_t> expected = {6,        7,        kNoLabel, kNoLabel, 10,
                                         kNoLabel, kNoLabel, kNoLabel, kNoLabel};
  EXPECT_EQ(batch.labels, expected);
  EXPECT_EQ(batch.n_label_items, 3);
  EXPECT_TRUE(batch.label_rows.empty());
  EXPECT_EQ(batch.input_ids, (std::vector<int32_t>{5, 6, 7, 8, 9, 10, 1, 1, 1}));
}

}  // namespace
}  // namespace ferry
