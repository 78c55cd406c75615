// The texts of a training as the model will see them: places of tokens, what is trained on, what is
// cut, the first batch.

#include "src/service/preview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>

#include "src/data/step_plan.h"
#include "src/files/hf/hf_config.h"
#include "src/inputs/data.h"
#include "src/inputs/tokens.h"
#include "src/request/run_plan.h"
#include "tests/files/test_files.h"
#include "tests/request/settings.h"
#include "tests/train/tiny_model.h"

namespace ferry::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Previews : public ::testing::Test {
 protected:
  Previews() {
    test::write_tiny_model(directory_ / "bert");
    test::write_tiny_language_model(directory_ / "llama");
  }
  config::Config settings(const std::string& model,
                          const std::string& task,
                          const std::filesystem::path& data,
                          const Settings& more = {}) const {
    Settings all = {{"model", (directory_ / model).string()},
                    {"task", task},
                    {"dataset", data.string()},
                    {"token_cache", "off"}};
    all.insert(all.end(), more.begin(), more.end());
    return config_of(all);
  }
  /** Of a file with this text. */
  Preview preview_of(const std::string& model,
                     const std::string& task,
                     const std::string& file,
                     const std::string& text,
                     const Settings& more = {},
                     const PreviewQuestion& question = {}) const {
    return service::preview(settings(model, task, directory_.write(file, text), more), question);
  }
  static std::string tokens_of(const PreviewSample& sample) {
    std::string all;
    for (const PreviewToken& token : sample.tokens) {
      all += (all.empty() ? "" : " ") + (token.is_trained ? "{" + token.piece + "}" : token.piece);
      if (!token.target.empty() && token.target != token.piece) all += "=" + token.target;
    }
    return all;
  }
  test::TempDir directory_;
};

TEST_F(Previews, AClassifierLearnsTheLabelOfTheWholeText) {
  const Preview preview = preview_of("bert", "classification", "x.tsv",
                                     "text\tlabel\nThe RED car\twarm\na blue bird\tcold\n");
  ASSERT_EQ(preview.samples.size(), 2u);
  const PreviewSample& first = preview.samples.front();
  EXPECT_EQ(tokens_of(first), "[CLS] the red car [SEP]");
  EXPECT_TRUE(first.has_answer);
  EXPECT_EQ(first.answer, "warm");
  EXPECT_EQ(shown_text(first, first.tokens[2]), "RED") << "as the text has it";
  EXPECT_EQ(shown_text(first, first.tokens[0]), "[CLS]");
  EXPECT_EQ(first.tokens[2].bytes, (TextRange{4, 7}));
  EXPECT_THAT(first.fields,
              ElementsAre(std::pair("text", "The RED car"), std::pair("label", "warm")));
  EXPECT_THAT(preview.labels, ElementsAre("cold", "warm"));
  EXPECT_EQ(preview.numbers.n_sequences, 2);
  EXPECT_EQ(preview.numbers.n_untrained, 0);
  EXPECT_EQ(preview.max_length, 32);
}

TEST_F(Previews, TextsThatAreCutAreCounted) {
  const Preview preview = preview_of(
      "bert", "classification", "x.tsv",
      "text\tlabel\nthe old car was very new\ta\nred car\tb\nblue\ta\n", {{"max_length", "4"}});
  EXPECT_TRUE(preview.samples[0].is_truncated);
  EXPECT_EQ(preview.samples[0].tokens.size(), 4u);
  EXPECT_FALSE(preview.samples[2].is_truncated);
  EXPECT_EQ(preview.numbers.n_longest, 4);
  int64_t n = 0;
  for (const int64_t count : preview.numbers.lengths.counts)
    n += count;
  EXPECT_EQ(n, 3);
  EXPECT_EQ(preview.numbers.lengths.counts.at(3), 2) << "a full one counts as cut, too";
  EXPECT_EQ(preview.numbers.n_truncated, 2);
}

TEST_F(Previews, ATaggerLearnsTheFirstTokenOfAWord) {
  const Preview preview = preview_of(
      "bert", "ner", "x.jsonl",
      R"({"tokens": ["red", "cars", "and", "birds"], "ner_tags": ["B", "I", "O", "B"]})");
  const PreviewSample& sample = preview.samples.at(0);
  EXPECT_EQ(sample.n_trained(), 4);
  EXPECT_EQ(sample.tokens[1].target, "B");
  EXPECT_EQ(shown_text(sample, sample.tokens[2]), "cars") << "the word, not [UNK]";
  EXPECT_EQ(sample.tokens.back().text, -1);
  EXPECT_FALSE(sample.has_answer);
  EXPECT_EQ(sample.fields.back(), std::pair(std::string("tags"), std::string("B I O B")));
}

TEST_F(Previews, AWindowWithoutTheAnswerSaysSo) {
  const Preview preview =
      preview_of("bert", "qa", "x.jsonl",
                 R"({"question": "old car", )"
                 R"("context": "the house was very very old and the bird was near the red car", )"
                 R"("answers": {"text": ["red car"], "answer_start": [54]}})",
                 {{"max_length", "14"}, {"doc_stride", "3"}});
  ASSERT_GE(preview.samples.size(), 2u);
  EXPECT_EQ(tokens_of(preview.samples.front()),
            "{[CLS]}=no answer here old car [SEP] the house was very very old and the bird [SEP]");
  const PreviewSample& last = preview.samples.back();
  EXPECT_EQ(last.n_trained(), 2);
  for (const PreviewSample& sample : preview.samples)
    for (const PreviewToken& token : sample.tokens)
      if (token.text >= 0) {
        EXPECT_EQ(shown_text(sample, token), token.piece) << "its place";
      }
  EXPECT_EQ(last.tokens[4].text, 1) << "windows know their places, too";
  EXPECT_EQ(last.n_parts, std::ssize(preview.samples));
}

TEST_F(Previews, ACompletionIsTrainedOnAndItsPromptIsNot) {
  const Preview preview = preview_of("llama", "causal-lm", "x.jsonl",
                                     R"({"prompt": "the car was", "completion": "very red"})"
                                     "\n");
  const PreviewSample& sample = preview.samples.at(0);
  EXPECT_THAT(tokens_of(sample), HasSubstr("the car was {very} {red}"));
  EXPECT_EQ(sample.fields.front().first, "prompt");
  EXPECT_EQ(shown_text(sample, sample.tokens[3]), "very");
  EXPECT_EQ(sample.tokens[3].text, 1);
}

TEST_F(Previews, AChatIsTheTextOfItsTemplateAndItsTokensHavePlacesInIt) {
  test::write_tiny_chat_model(directory_ / "chat");
  const Preview preview = preview_of("chat", "causal-lm", "x.jsonl",
                                     R"({"messages": [{"role": "user", "content": "the old car"},)"
                                     R"( {"role": "assistant", "content": "a red bird"}]})"
                                     "\n");
  ASSERT_EQ(preview.samples.size(), 1u);
  const PreviewSample& chat = preview.samples.front();
  EXPECT_TRUE(chat.is_chat);
  EXPECT_EQ(chat.text, "[BOS] the old car [EOS] is a red bird [EOS]");
  std::string read, learnt;
  for (const PreviewToken& token : chat.tokens) {
    ASSERT_EQ(token.text, 0);
    EXPECT_EQ(token.bytes.begin, read.size()) << "each begins where the one before ends";
    read += part_of(chat.text, token.bytes);
    if (token.is_trained) learnt += part_of(chat.text, token.bytes);
  }
  EXPECT_EQ(read, chat.text);
  EXPECT_EQ(learnt, " a red bird [EOS]");
}

TEST_F(Previews, ADocumentIsTrainedOnFromItsSecondToken) {
  std::string text;
  for (int i = 0; i < 40000; ++i)
    text += i % 2 ? "red " : "car ";
  const Preview preview =
      preview_of("llama", "causal-lm", "x.txt", text, {}, {.n_samples = 6, .counts_all = false});
  ASSERT_EQ(preview.samples.size(), 6u);
  for (const PreviewSample& sample : preview.samples) {
    EXPECT_EQ(sample.tokens.size(), 64u);
    EXPECT_EQ(sample.n_trained(), 63);
    EXPECT_LE(sample.text.size(), 64u << 10) << "no more of it is looked at";
  }
  EXPECT_EQ(preview.samples[5].tokens[0].bytes.begin, 5u * 64 * 4);
  EXPECT_FALSE(preview.is_of_all);
  EXPECT_FALSE(preview.first_batch);
}

TEST_F(Previews, AMaskedModelReadsAnotherTokenThanItLearns) {
  std::string rows = "text\n";
  for (int i = 0; i < 20; ++i)
    rows += "the old red car was near a very new blue house\n";
  const Preview preview = preview_of("bert", "mlm", "x.tsv", rows, {{"text_column", "text"}});
  int64_t n_hidden = 0;
  for (const PreviewSample& sample : preview.samples)
    for (const PreviewToken& token : sample.tokens) {
      if (!token.is_trained) continue;
      EXPECT_FALSE(token.target.empty());
      EXPECT_EQ(shown_text(sample, token), token.target) << "the place of the hidden word";
      n_hidden += token.piece == "[MASK]";
    }
  EXPECT_GT(n_hidden, 0);
  EXPECT_FALSE(preview.numbers.n_untrained) << "that is drawn anew in each step";
}

TEST_F(Previews, TheFirstBatchIsThatOfTheTraining) {
  test::write_tiny_data(directory_ / "x.tsv", 60, 3);
  const config::Config config =
      settings("bert", "classification", directory_ / "x.tsv",
               {{"train_batch_size", "8"}, {"eval_fraction", "0.2"}, {"seed", "9"}});
  const Preview preview = service::preview(config);
  ASSERT_TRUE(preview.first_batch);
  // As the trainer takes it.
  const HfConfig model = HfConfig::load(directory_ / "bert" / "config.json");
  const Tokenizer tokenizer = Tokenizer::open(directory_ / "bert");
  const Texts texts = texts_to_train_on(config, model, &tokenizer);
  const Data data =
      tokenize(texts, tokenizer, token_settings(config, *texts.task, directory_ / "bert", 32, 1));
  const StepPlan step = plan_step(Sampler(data.train.size(), shuffle_seed_of(config)),
                                  position_of_step(data.train.size(), 0, {.train_batch_size = 8}),
                                  {.train_batch_size = 8, .micro_batch_size = 8});
  ASSERT_EQ(preview.first_batch->rows.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    std::vector<int32_t> ids;
    for (const PreviewToken& token : preview.first_batch->rows[i].sequence.tokens)
      ids.push_back(token.id);
    EXPECT_EQ(ids, data.train.ids(step.micro_batches.at(0).at(i)));
    EXPECT_FALSE(preview.first_batch->rows[i].sequence.answer.empty());
  }
  EXPECT_EQ(preview.numbers.n_sequences, 48);
  int64_t n_held_out = 0;
  for (const PreviewSample& sample : preview.samples)
    n_held_out += sample.is_held_out;
  EXPECT_GT(n_held_out, 0);
  EXPECT_LE(n_held_out, 12);
}

TEST_F(Previews, WhatIsWrongWithTheDataIsSaid) {
  const auto data = directory_.write("x.tsv", "headline\ttopic\nred car\ta\nblue\tb\n");
  const auto refusal = [](const config::Config& config, Fault fault) {
    return test::error_of([&] { service::preview(config); }, fault);
  };
  const config::Config no_column =
      settings("bert", "classification", data, {{"text_column", "sentence"}});
  EXPECT_THAT(refusal(no_column, Fault::usage), HasSubstr("headline"));
  const config::Config no_file = settings("bert", "classification", directory_ / "none.tsv");
  EXPECT_THAT(refusal(no_file, Fault::data), HasSubstr("none.tsv"));
  const config::Config no_model = settings("no_model", "classification", data);
  EXPECT_THAT(refusal(no_model, Fault::data), HasSubstr("no_model"));
  const config::Config no_data = config_of({{"model", (directory_ / "bert").string()}});
  EXPECT_THAT(refusal(no_data, Fault::usage), HasSubstr("no data"));
}

}  // namespace
}  // namespace ferry::service
