#include "src/inputs/text_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

using testing::ElementsAre;

constexpr int64_t kSizes = 8;

RunTexts random_texts(int64_t n, uint64_t seed, int64_t n_epochs) {
  std::mt19937_64 random(seed);
  RunTexts texts = {.data_seed = seed, .n_epochs = n_epochs, .max_length = 512};
  for (int64_t i = 0; i < n; ++i)
    texts.trained.push_back(static_cast<int32_t>(10 + random() % 491));
  return texts;
}

/** As the planner asks, and as the plan rounds. */
int64_t largest_of(const RunTexts& texts, const StepSplit& split) {
  return round_up(text_tokens_of(texts)(split.train_batch_size, split.micro_batch_size).most, 64);
}

TEST(TextTokens, EveryMicroBatchOfARunHasASize) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto n = static_cast<int64_t>(5 + seed * 7 % 126);
    const StepSplit split = {.train_batch_size = 32,
                             .micro_batch_size = static_cast<int64_t>(1 + seed % 11)};
    // 300: more than are looked at.
    const int64_t n_epochs = seed % 3 == 0 ? 300 : 3;
    const RunTexts texts = random_texts(n, seed, n_epochs);
    const auto sizes = choose_sizes(texts, split, largest_of(texts, split), kSizes);
    EXPECT_LE(std::ssize(sizes), kSizes);
    const auto counts = micro_batch_token_counts(Sampler(n, seed), texts.trained, split,
                                                 n_epochs * steps_per_epoch(n, split));
    EXPECT_LE(*std::ranges::max_element(counts), sizes.back()) << seed;
  }
}

TEST(TextTokens, SequencesOfPacksAreCounted) {
  std::vector<TokenizedExample> sequences;
  for (int i = 0; i < 96; ++i)
    sequences.push_back({.ids = std::vector<int32_t>(i < 32 ? 16 : 64)});
  // Two packs of sixteen, and sixteen of four.
  const TokenizedDataset data = dataset_of(sequences).packed(256);
  RunTexts texts = run_texts_of(data, TokenizedDataset());
  texts.max_length = 256;
  ASSERT_EQ(texts.trained.size(), 18u);
  const auto tokens = text_tokens_of(texts);
  ASSERT_TRUE(tokens) << "all are full";
  EXPECT_EQ(tokens(8, 1).n_seqs, round_up_sequences(16 + 1));
  EXPECT_EQ(tokens(8, 4).n_seqs, round_up_sequences(16 + 16 + 4 + 4 + 4));
  EXPECT_EQ(tokens(8, 4).most, 4 * 256);
  EXPECT_EQ(tokens(8, 4).attended, (32 * 16 * 16 + 64 * 64 * 64) / (32 * 16 + 64 * 64));
}

TEST(TextTokens, AreFewerThanOfFullTextsAndCountEvaluations) {
  RunTexts texts = random_texts(5000, 1, 3);
  const TextTokens alone = text_tokens_of(texts)(32, 32);
  EXPECT_LT(alone.most, 32 * 512 * 3 / 4);
  EXPECT_LE(alone.typical, alone.most);
  EXPECT_GT(alone.typical, 32 * 200);
  EXPECT_GT(alone.attended, 255);  // longer texts count more
  texts.evaluated.assign(40, 511);
  EXPECT_EQ(text_tokens_of(texts)(32, 32).most, 32 * 511);
  texts.trained.clear();
  EXPECT_EQ(text_tokens_of(texts)(32, 8).most, 8 * 511);
  EXPECT_EQ(text_tokens_of(texts)(32, 8).attended, 511);
}

TEST(TextTokens, NothingIsKnownBetterOfFullTextsAlone) {
  RunTexts texts = {.trained = {64, 64, 64}, .max_length = 64};
  EXPECT_FALSE(text_tokens_of(texts));
  texts.evaluated = {64, 9};
  ASSERT_TRUE(text_tokens_of(texts));
  EXPECT_EQ(text_tokens_of(texts)(2, 2).most, 128);
  texts = {.trained = {20, 20, 20}, .max_length = 64};
  ASSERT_TRUE(text_tokens_of(texts));
  EXPECT_EQ(text_tokens_of(texts)(3, 3).most, 60);
}

TEST(TextTokens, ARunThatGoesOnKeepsItsSizesWhateverItsLength) {
  const StepSplit split = {.train_batch_size = 16, .micro_batch_size = 4};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RunTexts texts = random_texts(60, seed, 3);
    texts.token_sizes = choose_sizes(texts, split, largest_of(texts, split), kSizes);
    const auto begun_with = texts.token_sizes;
    for (const int64_t n_epochs : {1, 3, 90}) {
      texts.n_epochs = n_epochs;
      EXPECT_EQ(largest_of(texts, split), begun_with.back());
      EXPECT_EQ(choose_sizes(texts, split, largest_of(texts, split), kSizes), begun_with);
    }
    // Past what was looked at the longest texts may meet: one larger size beside the others.
    texts.n_epochs = 1000;
    auto more = choose_sizes(texts, split, largest_of(texts, split), kSizes);
    EXPECT_LE(max_micro_batch_tokens(texts.trained, 4), more.back());
    if (more.size() > begun_with.size()) more.pop_back();
    EXPECT_EQ(more, begun_with);
    // And back.
    texts.token_sizes = choose_sizes(texts, split, largest_of(texts, split), kSizes);
    texts.n_epochs = 2;
    EXPECT_EQ(choose_sizes(texts, split, largest_of(texts, split), kSizes), texts.token_sizes);
  }
  // Sizes of other texts than these leave memory alone.
  RunTexts texts = {.trained = {8, 9}, .max_length = 16, .token_sizes = {64, 6400}};
  EXPECT_THAT(choose_sizes(texts, {.train_batch_size = 2, .micro_batch_size = 2}, 64, kSizes),
              ElementsAre(64));
}

TEST(TextTokens, ParsesSizes) {
  EXPECT_THAT(parse_token_sizes("64"), ElementsAre(64));
  EXPECT_THAT(parse_token_sizes("64,448,512"), ElementsAre(64, 448, 512));
  for (const char* bad : {"", ",", "64,", "63", "0", "-64", "128,64", "64,64", "64;128", "auto",
                          "64 128", "99999999999999999999"})
    EXPECT_THROW(parse_token_sizes(bad), Error) << bad;
}

}  // namespace
}  // namespace ferry
