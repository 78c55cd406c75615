// Pairs of answers: their samples, the tokens that are asked for, and the scores of evaluations.

#include <gmock/gmock.h>

#include "models/core/preference.h"
#include "tests/tasks/made.h"

namespace ferry {
namespace {

using test::Made;
using test::metric;
using ::testing::ElementsAre;

const std::vector<Example> kPair = {
    {.text = "hello", .text_pair = "world", .rejected = "the the", .margin = 0.25f}};

TaskSettings settings_of(PreferenceKind kind) {
  TaskSettings settings;
  settings.preference.kind = kind;
  return settings;
}

TEST(Preference, BothAnswersFollowTheSamePrompt) {
  const Made made("preference", {.problem = ProblemType::preferences}, kPair,
                  settings_of(PreferenceKind::sigmoid), 16);
  ASSERT_EQ(made.data.n_sequences(), 2);
  const auto chosen = made.data.ids(0), rejected = made.data.ids(1);
  const auto begin = static_cast<size_t>(made.data.labels(0)[0]);
  EXPECT_EQ(made.data.labels(1)[0], made.data.labels(0)[0]);
  EXPECT_TRUE(std::equal(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(begin),
                         rejected.begin()));
  EXPECT_EQ(made.data.labels(0)[1], std::ssize(chosen));
  EXPECT_EQ(made.batch.n_label_items, 1);

  const TokenizedDataset pairs = made.data.in_pairs();
  EXPECT_EQ(pairs.size(), 1);
  EXPECT_EQ(pairs.n_tokens(0), std::ssize(chosen) + std::ssize(rejected));
  EXPECT_NE(pairs.fingerprint(), made.data.fingerprint());
}

/** The number of labels of a sequence. */
size_t n_asked(const Made& made, size_t s) {
  return made.task->asked_tokens(made.batch, s, made.tokenizer).size();
}

TEST(Preference, AnswersAloneAreAskedForButOddsTeachThePrompt) {
  const Made dpo("preference", {}, kPair, settings_of(PreferenceKind::sigmoid), 16);
  const auto n_prompt = static_cast<size_t>(dpo.data.labels(0)[0]);
  const auto n_chosen = static_cast<size_t>(dpo.data.n_ids(0)),
             n_rejected = static_cast<size_t>(dpo.data.n_ids(1));
  EXPECT_EQ(n_asked(dpo, 0), n_chosen - n_prompt);
  EXPECT_EQ(n_asked(dpo, 1), n_rejected - n_prompt);
  EXPECT_EQ(dpo.batch.n_end_items, static_cast<int64_t>(n_chosen - n_prompt));
  const Made orpo("preference", {}, kPair, settings_of(PreferenceKind::orpo), 16);
  EXPECT_EQ(n_asked(orpo, 0), n_chosen - 1);
  EXPECT_EQ(n_asked(orpo, 1), n_rejected - n_prompt);
  EXPECT_EQ(orpo.batch.n_end_items, static_cast<int64_t>(n_chosen - 1));
  EXPECT_THAT(orpo.batch.preferences, ElementsAre(0, static_cast<float>(n_prompt - 1), 0, 0,
                                                  static_cast<float>(n_prompt - 1), 0));
}

TEST(Preference, APromptWithoutRoomIsLeftOutWithBothAnswers) {
  TaskSettings settings = settings_of(PreferenceKind::sigmoid);
  settings.long_prompts = LongPrompts::leave_out;
  const Example good = kPair.front();
  Example wordy = good;
  wordy.text = "hello world hello world hello world hello world";
  const Made made("preference", {}, {good, wordy}, settings, 6);
  EXPECT_EQ(made.data.n_sequences(), 2);
}

TEST(Preference, ScoresAreTheRewardsOfBoth) {
  Made made("preference", {}, kPair, settings_of(PreferenceKind::sigmoid), 16);
  made.data.set_references(std::make_shared<std::vector<float>>(std::vector<float>{-4, -9}));
  made.batch.preferences.clear();
  made.task->label(made.batch, made.data, made.tokenizer, {});
  const auto scorer = made.scorer();
  // log_p, tokens, logits, surprise, gradient
  scorer->add(made.batch, std::vector<float>{-2, 2, 4, 2, 0, -10, 5, 10, 0, 0}, {});
  const Metrics metrics = scorer->metrics(0.5);
  EXPECT_NEAR(metric(metrics, "rewards/chosen"), 0.1 * 2, 1e-6);
  EXPECT_NEAR(metric(metrics, "rewards/rejected"), 0.1 * -1, 1e-6);
  EXPECT_NEAR(metric(metrics, "rewards/margins"), 0.3, 1e-6);
  EXPECT_EQ(metric(metrics, "rewards/accuracies"), 1);
  EXPECT_EQ(metric(metrics, "logps/rejected"), -10);
  EXPECT_EQ(metric(metrics, "logits/chosen"), 2);
  const auto names = made.task->metric_names();
  for (const auto& [name, value] : metrics)
    EXPECT_THAT(names, ::testing::Contains(name));
}

TEST(Reward, EachAnswerIsATextWithANumber) {
  const Made made("reward", {}, kPair, {}, 16);
  ASSERT_EQ(made.data.n_sequences(), 2);
  EXPECT_NE(made.data.ids(0), made.data.ids(1));
  EXPECT_THAT(made.batch.values, ElementsAre(0.25f, 0.25f));
  EXPECT_EQ(made.batch.n_label_items, 1);
  const auto scorer = made.scorer();
  scorer->add(made.batch, std::vector<float>{1.5f, -0.5f}, {});
  const Metrics metrics = scorer->metrics(0.1);
  EXPECT_EQ(metric(metrics, "accuracy"), 1);
  EXPECT_EQ(metric(metrics, "margin"), 2);
  EXPECT_EQ(metric(metrics, "mean_reward"), 0.5);
  EXPECT_EQ(metric(metrics, "min_reward"), -0.5);
}

}  // namespace
}  // namespace ferry
