#include "src/data/batch.h"

#include <gmock/gmock.h>

#include <atomic>
#include <stdexcept>

#include "tests/files/test_files.h"

namespace ferry {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TokenizedDataset three_samples() {
  TokenizedDataset dataset(ProblemType::single_label, 2);
  dataset.add({.ids = {101, 7, 102}, .type_ids = {}}, {.class_id = 1});
  dataset.add({.ids = {101, 8, 9, 102, 5, 102}, .type_ids = {0, 0, 0, 0, 1, 1}, .truncated = true},
              {.class_id = 0});
  dataset.add({.ids = {101, 102}, .type_ids = {0, 0}}, {.class_id = 1});
  return dataset;
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
  EXPECT_GE(dataset.bytes(), 11 * 5 + 4 * 8 + 3 * 4);
}

TEST(TokenizeDataset, IsTheSameOnAnyNumberOfThreads) {
  Dataset dataset;
  for (int i = 0; i < 10'000; ++i)
    dataset.examples.push_back({.text = std::to_string(i)});
  const Tokenize tokenize = [](const Example& example) {
    return TokenizedExample{
        .ids = std::vector<int32_t>(1 + example.text.size(), std::stoi(example.text))};
  };
  const auto one = tokenize_dataset(dataset, tokenize);
  const auto three = tokenize_dataset(dataset, tokenize, {}, 3);
  ASSERT_EQ(one.size(), 10'000);
  ASSERT_EQ(three.size(), 10'000);
  for (int64_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one.ids(i)[0], i);
    ASSERT_TRUE(
        std::equal(one.ids(i).begin(), one.ids(i).end(), three.ids(i).begin(), three.ids(i).end()));
  }
  const std::vector<int64_t> which = {7, 3};
  const auto some = tokenize_dataset(dataset, tokenize, which);
  EXPECT_EQ(some.size(), 2);
  EXPECT_EQ(some.ids(0)[0], 7);
}

TEST(TokenizeDataset, RethrowsAndRefusesEmptyResults) {
  Dataset dataset;
  for (int i = 0; i < 100; ++i)
    dataset.examples.push_back({.text = "x"});
  std::atomic<int> calls = 0;
  const Tokenize fails = [&](const Example&) -> TokenizedExample {
    if (++calls == 50) throw std::runtime_error("the fiftieth");
    return {.ids = {1}};
  };
  EXPECT_THROW(tokenize_dataset(dataset, fails, {}, 4), std::runtime_error);
  EXPECT_THAT(test::error_of([&] {
                tokenize_dataset(dataset, [](const Example&) { return TokenizedExample{}; });
              }),
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
  EXPECT_THAT(batch.class_labels, ElementsAre(1, 0));
  EXPECT_EQ(batch.n_label_items, 2);
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
  EXPECT_THAT(all.class_labels, ElementsAre(1, 0, 1));
  EXPECT_EQ(all.n_label_items, 3);
  EXPECT_EQ(collate(dataset, samples, {}, 0).n_tokens(), 8);
}

TEST(Collate, LabelsOfEachKind) {
  TokenizedDataset hot(ProblemType::multi_label, 3);
  hot.add({.ids = {1}}, {.classes = {0, 2}});
  hot.add({.ids = {2}}, {});
  const auto a = collate(hot, std::vector<int64_t>{1, 0}, {}, 0);
  EXPECT_THAT(a.hot_labels, ElementsAre(0, 0, 0, 1, 0, 1));
  EXPECT_EQ(a.n_label_items, 2);
  TokenizedDataset values(ProblemType::regression);
  values.add({.ids = {1}}, {.value = 0.5f});
  EXPECT_THAT(collate(values, std::vector<int64_t>{0}, {}, 0).value_labels, ElementsAre(0.5f));
  TokenizedDataset bare;
  bare.add({.ids = {1}}, {});
  EXPECT_EQ(collate(bare, std::vector<int64_t>{0}, {}, 0).n_label_items, 0);
}

TEST(CollateDeathTest, ASizeTooSmallIsOurBug) {
  const TokenizedDataset dataset = three_samples();
  EXPECT_DEATH(collate(dataset, std::vector<int64_t>{0, 1}, std::vector<int64_t>{8}, 0),
               "a micro-batch of 9 tokens, the largest size is 8");
}

MicroBatch long_batch() {
  TokenizedDataset dataset;
  std::vector<int32_t> ids(5000);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = 1000 + static_cast<int32_t>(i % 500);
  ids.front() = 101;
  ids.back() = 102;
  for (int i = 0; i < 4; ++i)
    dataset.add({.ids = ids}, {});
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
  ASSERT_EQ(batch.token_labels.size(), batch.input_ids.size());
  for (size_t i = 0; i < batch.input_ids.size(); ++i) {
    if (batch.token_labels[i] == kNoLabel) {
      ASSERT_EQ(batch.input_ids[i], before.input_ids[i]);
      continue;
    }
    ASSERT_LT(static_cast<int64_t>(i), batch.n_real_tokens);
    ASSERT_EQ(batch.token_labels[i], before.input_ids[i]);
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
    return std::pair(batch.token_labels, batch.input_ids);
  };
  const auto first = labels({1, 2, 3});
  EXPECT_EQ(labels({1, 2, 3}), first);
  for (const MaskKey& other :
       {MaskKey{2, 2, 3}, MaskKey{1, 3, 3}, MaskKey{1, 2, 4}, MaskKey{1, 3, 2}})
    EXPECT_NE(labels(other).first, first.first);
}

TEST(LabelNextTokens, ShiftsWithinEachSequenceAndLeavesTheTail) {
  TokenizedDataset dataset;
  for (const std::vector<int32_t>& ids : {std::vector<int32_t>{5, 6, 7}, {8}, {9, 10}})
    dataset.add({.ids = ids}, {});
  MicroBatch batch = collate(dataset, std::vector<int64_t>{0, 1, 2}, std::vector<int64_t>{9}, 1);
  batch.label_rows = {3};  // of an earlier use
  label_next_tokens(batch);
  const std::vector<int32_t> expected = {6,        7,        kNoLabel, kNoLabel, 10,
                                         kNoLabel, kNoLabel, kNoLabel, kNoLabel};
  EXPECT_EQ(batch.token_labels, expected);
  EXPECT_EQ(batch.n_label_items, 3);
  EXPECT_TRUE(batch.label_rows.empty());
  EXPECT_EQ(batch.input_ids, (std::vector<int32_t>{5, 6, 7, 8, 9, 10, 1, 1, 1}));
}

}  // namespace
}  // namespace ferry
