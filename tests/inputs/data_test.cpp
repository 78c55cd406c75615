// The data of a training as its settings name them: what is held out, and whose labels they are.

#include "src/inputs/data.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "src/inputs/tokens.h"
#include "tests/files/test_files.h"
#include "tests/request/settings.h"
#include "tests/text/model_files.h"

namespace ferry {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HfConfig bare_model() {
  return HfConfig::parse(R"({"model_type": "bert"})", "config.json");
}

std::vector<std::string> texts_of(const TextSource& source) {
  std::vector<std::string> texts;
  const auto examples = source.examples();
  for (Example example; examples->next(example);) {
    if (begins_text(example.part)) texts.emplace_back();
    texts.back() += example.text;
  }
  return texts;
}

Data tokens_of(const Texts& texts) {
  const test::TemporaryDirectory model;
  model.write("tokenizer.json", test::small_model().dump());
  return tokenize(texts, Tokenizer::open(model.path()), {});
}

Texts held_out(const std::filesystem::path& data, const std::string& fraction) {
  return texts_to_train_on(
      config_of({{"task", "causal-lm"}, {"dataset", data.string()}, {"eval_fraction", fraction}}),
      bare_model());
}

TEST(TrainingData, TheEndOfTheOnlyDocumentIsHeldOut) {
  const test::TempDir dir;
  const auto file = dir.write("x.txt", "one\ntwo\nthree\nfour\nfive\n");
  const Texts texts = held_out(file, "0.3");
  EXPECT_THAT(texts_of(texts.train), ElementsAre("one\ntwo\nthree\n"));
  EXPECT_THAT(texts_of(texts.eval), ElementsAre("four\nfive\n"));
  // The nearest line end, also where it lies before.
  EXPECT_THAT(texts_of(held_out(file, "0.4").eval), ElementsAre("four\nfive\n"));
  // Neither part is ever blank.
  EXPECT_THAT(texts_of(held_out(file, "0.01").eval), ElementsAre("five\n"));
  EXPECT_THAT(texts_of(held_out(file, "0.99").train), ElementsAre("one\n"));
  // One line cannot be split, as one example cannot.
  const Texts one_line = held_out(dir.write("y.txt", "\none line\n\n"), "0.3");
  EXPECT_THAT(test::error_of([&] { tokens_of(one_line); }), HasSubstr("cannot be split"));
}

TEST(TrainingData, AFolderOfTextsIsDocuments) {
  const test::TempDir dir;
  for (const char* name : {"a.txt", "b.txt", "c.txt", "d.txt"})
    dir.write(std::string("texts/") + name, std::string("text of ") + name);
  dir.write("texts/notes.md", "no document");
  const Texts texts = held_out(dir / "texts", "0.25");
  const Data data = tokens_of(texts);
  EXPECT_EQ(data.train.n_examples(), 3);
  EXPECT_EQ(data.eval.n_examples(), 1);
  std::set<int64_t> places;
  for (const TokenizedDataset* part : {&data.train, &data.eval})
    for (int64_t i = 0; i < part->n_sequences(); ++i)
      places.insert(part->example_of(i));
  EXPECT_THAT(places, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(texts.notes.front(), HasSubstr("4 documents"));
}

TEST(TrainingData, ATaggerKeepsItsOwnTags) {
  const test::TempDir dir;
  const auto file =
      dir.write("x.jsonl", R"({"tokens": ["Ann", "sings"], "ner_tags": ["B-PER", "O"]})");
  const auto config = config_of({{"task", "ner"}, {"dataset", file.string()}});
  const auto model = [](const std::string& architecture) {
    return HfConfig::parse(R"({"model_type": "bert", "architectures": [")" + architecture +
                               R"("], "id2label": {"0": "O", "1": "B-LOC", "2": "B-PER"}})",
                           "config.json");
  };
  const Texts known = texts_to_train_on(config, model("BertForTokenClassification"));
  EXPECT_THAT(known.task->scheme().labels.names(), ElementsAre("O", "B-LOC", "B-PER"));
  Example first;
  known.train.examples()->next(first);
  EXPECT_THAT(first.label.tags, ElementsAre(2, 0));
  const Texts new_head = texts_to_train_on(config, model("BertForSequenceClassification"));
  EXPECT_THAT(new_head.task->scheme().labels.names(), ElementsAre("B-PER", "O"));
}

TEST(TrainingData, PromptsThatAreTooLongAreCountedAndNamed) {
  const test::TempDir dir;
  const auto file = dir.write("x.jsonl", R"({"prompt": "hello", "completion": "world"}
{"prompt": "hello world hello world hello world", "completion": "the"}
)");
  const auto data_with = [&](const std::string& what) {
    const test::TemporaryDirectory model;
    model.write("tokenizer.json", test::small_model().dump());
    return tokenize(
        texts_to_train_on(
            config_of({{"task", "causal-lm"}, {"dataset", file.string()}, {"long_prompts", what}}),
            bare_model()),
        Tokenizer::open(model.path()), {.max_length = 6});
  };
  const Data left = data_with("leave_out");
  EXPECT_EQ(left.train.n_examples(), 1);
  EXPECT_THAT(left.notes, Contains(AllOf(HasSubstr("1 of 2 prompts fill max_length = 6 tokens"),
                                         HasSubstr("they are left out, the first is"),
                                         HasSubstr("x.jsonl:2"))));
  EXPECT_EQ(data_with("cut").train.n_examples(), 2);
}

TEST(TrainingData, TheFirstTextsAreTaken) {
  const test::TempDir dir;
  std::string rows = "text,label\n";
  for (int i = 0; i < 20; ++i)
    rows += i < 10 ? "hello,a\n" : "world,b\n";
  const auto file = dir.write("x.csv", rows);
  const auto data_with = [&](Settings settings) {
    settings.emplace_back("dataset", file.string());
    return tokens_of(texts_to_train_on(config_of(settings), bare_model()));
  };
  const Data few = data_with({{"max_train_samples", "4"}});
  EXPECT_EQ(few.train.n_examples(), 4);
  EXPECT_THAT(few.notes, Contains(HasSubstr("the first 4 texts have 1 of 2 labels")));
  const Data split =
      data_with({{"eval_fraction", "0.5"}, {"max_train_samples", "3"}, {"max_eval_samples", "2"}});
  EXPECT_EQ(split.train.n_examples(), 3);
  EXPECT_EQ(split.eval.n_examples(), 2);
  EXPECT_EQ(data_with({{"max_train_samples", "99"}}).train.n_examples(), 20);
}

TEST(TrainingData, DataSetsAreMixedInShares) {
  const test::TempDir dir;
  std::string many, few;
  for (int i = 0; i < 40; ++i)
    many += fmt::format("{{\"text\": \"many {}\"}}\n", i);
  for (int i = 0; i < 6; ++i)
    few += fmt::format("{{\"instruction\": \"few {}\", \"output\": \"x\"}}\n", i);
  const std::string names =
      dir.write("a.jsonl", many).string() + "," + dir.write("b.jsonl", few).string();
  const auto mixed = [&](const std::string& shares, const std::string& seed) {
    return texts_to_train_on(config_of({{"task", "causal-lm"},
                                        {"dataset", names},
                                        {"dataset_shares", shares},
                                        {"data_seed", seed}}),
                             bare_model());
  };
  const Texts texts = mixed("0.7,0.3", "1");
  const auto all = texts_of(texts.train);
  EXPECT_EQ(std::ranges::count_if(all, [](auto& text) { return text.starts_with("many"); }), 14);
  EXPECT_EQ(all.size(), 20u);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 20u);
  EXPECT_THAT(texts.notes, Contains(HasSubstr("gives 14 of its 40 texts, a share of 0.7")));
  EXPECT_EQ(texts_of(mixed("0.7,0.3", "1").train), all);
  EXPECT_NE(texts_of(mixed("0.7,0.3", "2").train), all);
  EXPECT_NE(mixed("0.7,0.3", "2").train.reader->choice(), texts.train.reader->choice());
  EXPECT_EQ(texts_of(mixed("40,6", "1").train).size(), 46u);
  EXPECT_THAT(test::error_of([&] { mixed("0.7", "1"); }, Fault::usage),
              HasSubstr("dataset_shares has 1 numbers, and dataset 2 names"));
}

TEST(TrainingData, ClassWeightsAreBalancedOrGiven) {
  const test::TempDir dir;
  const auto file = dir.write("x.csv", "text,label\nhello,a\nhello,a\nhello,a\nworld,b\n");
  const Texts texts = texts_to_train_on(config_of({{"dataset", file.string()}}), bare_model());
  const Data data = tokens_of(texts);
  // As scikit-learn's compute_class_weight("balanced"): 4 / (2 * 3), 4 / (2 * 1).
  EXPECT_THAT(choose_class_weights("auto", *texts.task, data.train),
              ElementsAre(FloatEq(2.0f / 3), FloatEq(2)));
  EXPECT_THAT(choose_class_weights("1, 2.5", *texts.task, data.train), ElementsAre(1, 2.5f));
  EXPECT_THAT(choose_class_weights("none", *texts.task, data.train), IsEmpty());
  const auto error_of = [&](const std::string& option) {
    return test::error_of([&] { choose_class_weights(option, *texts.task, data.train); },
                          Fault::usage);
  };
  EXPECT_THAT(error_of("1"), HasSubstr("has 1 numbers for 2 labels: a, b"));
  EXPECT_THAT(error_of("1,-2"), HasSubstr("class_weights has '-2'"));
}

/** As in training: where labels are unbalanced accuracy says little. */
TEST(MeasuredData, UnbalancedLabelsGoByMacroF1) {
  const test::TempDir dir;
  dir.write("model/config.json", R"({"model_type": "bert", "id2label": {"0": "a", "1": "b"},
                                     "architectures": ["BertForSequenceClassification"]})");
  dir.write("model/tokenizer.json", test::small_model().dump());
  const auto figure_of = [&](int n_a, int n_b) {
    std::string rows = "text\tlabel\n";
    for (int i = 0; i < n_a + n_b; ++i)
      rows += fmt::format("text {}\t{}\n", i, i < n_a ? "a" : "b");
    const auto file = dir.write("rows.tsv", rows);
    const Texts texts = texts_to_answer(
        config_of({{"task", "classification"}, {"dataset", file.string()}}),
        HfDirectory::open(dir / "model", /*needs_weights=*/false), Tokenizer::open(dir / "model"),
        /*wants_labels=*/true, {});
    EXPECT_THAT(texts.task->scheme().labels.names(), ElementsAre("a", "b"));
    return texts.task->metric_names().at(1);  // behind the loss
  };
  EXPECT_EQ(figure_of(6, 5), "accuracy");
  EXPECT_EQ(figure_of(40, 1), "f1_macro");
}

TEST(TrainingData, SharedTinyShakespeare) {
  const auto file = test::shared_dir() / "data" / "tinyshakespeare" / "input.txt";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  const Texts texts = held_out(file, "0.1");
  const std::string train = texts_of(texts.train).at(0), eval = texts_of(texts.eval).at(0);
  EXPECT_EQ(train.back(), '\n');
  EXPECT_NEAR(static_cast<double>(eval.size()) / static_cast<double>(train.size() + eval.size()),
              0.1, 1e-3);
}

/** Chats of a small model whose template ends each turn with [SEP]. */
class ChatData : public testing::Test {
 protected:
  void SetUp() override {
    if (!chat::ChatTemplate::is_built()) GTEST_SKIP() << "this build has no engine for templates";
    dir_.write("model/tokenizer.json", test::small_model().dump());
    dir_.write("model/tokenizer_config.json", R"({"eos_token": "[SEP]"})");
    dir_.write("model/chat_template.jinja",
               "{% for m in messages %}{{ m.content + ' [SEP] ' }}{% endfor %}");
    std::string rows;
    for (const char* text : {"hello", "the", "world"})
      rows += fmt::format(R"({{"messages": [{{"role": "user", "content": "{}"}}, )"
                          R"({{"role": "assistant", "content": "world"}}]}})"
                          "\n",
                          text);
    data_ = dir_.write("x.jsonl", rows);
  }

  Data read(Settings settings, int64_t max_length = 100, bool packs = false) const {
    settings.emplace_back("task", "causal-lm");
    settings.emplace_back("dataset", data_.string());
    const Tokenizer tokenizer = Tokenizer::open(dir_ / "model");
    const Texts texts =
        texts_to_train_on(config_of(settings), bare_model(), &tokenizer, dir_ / "model");
    return tokenize(texts, tokenizer,
                    {.max_length = max_length, .n_threads = 1, .packs = packs, .keeping = {}});
  }

  test::TempDir dir_;
  std::filesystem::path data_;
};

TEST_F(ChatData, LabelsAreThoseOfTheAnswers) {
  const Data data = read({});
  ASSERT_EQ(data.train.n_sequences(), 3);
  EXPECT_THAT(data.train.ids(0), ElementsAre(5, 3, 6, 3));
  EXPECT_THAT(std::vector(data.train.labels(0).begin(), data.train.labels(0).end()),
              ElementsAre(2, 4));
  const int64_t all[] = {0, 1};
  MicroBatch batch = collate(data.train, all, {}, 0);
  const Tokenizer tokenizer = Tokenizer::open(dir_ / "model");
  data.task->label(batch, data.train, tokenizer, {});
  constexpr int kNone = kNoLabel;
  EXPECT_THAT(batch.labels, ElementsAre(kNone, 6, 3, kNone, kNone, 6, 3, kNone));
  EXPECT_EQ(batch.n_label_items, 4);
  EXPECT_FALSE(data.task->is_unasked(data.train, 0));
}

TEST_F(ChatData, PackedChatsKeepTheirLabels) {
  const Data data = read({}, 8, /*packs=*/true);
  ASSERT_EQ(data.train.size(), 2);
  const int64_t first[] = {0};
  MicroBatch batch = collate(data.train, first, {}, 0);
  const Tokenizer tokenizer = Tokenizer::open(dir_ / "model");
  data.task->label(batch, data.train, tokenizer, {});
  constexpr int kNone = kNoLabel;
  EXPECT_THAT(batch.labels, ElementsAre(kNone, 6, 3, kNone, kNone, 6, 3, kNone));
}

TEST_F(ChatData, ChatsWithoutRoomForAnAnswerAreCounted) {
  EXPECT_THAT(test::error_of([&] { read({}, 2); }),
              HasSubstr("3 of 3 prompts fill max_length = 2"));
  const Data cut = read({}, 3);
  EXPECT_EQ(cut.train.n_truncated(), 3);
}

TEST_F(ChatData, LongChatsMayLoseTheirOldestTurns) {
  data_ = dir_.write(
      "long.jsonl",
      R"({"messages": [{"role": "system", "content": "un"}, {"role": "user", "content": "hello"}, )"
      R"({"role": "assistant", "content": "world"}, {"role": "user", "content": "the"}, )"
      R"({"role": "assistant", "content": "cafe"}]})");
  const Settings last = {{"train_on_turns", "last"}};
  EXPECT_THAT(test::error_of([&] { read(last, 6); }), HasSubstr("1 of 1 prompts fill"));
  const Data cut = read({{"train_on_turns", "last"}, {"long_prompts", "cut"}}, 6);
  EXPECT_THAT(cut.train.ids(0), ElementsAre(7, 3, 13, 3, 14, 3));
  EXPECT_THAT(std::vector(cut.train.labels(0).begin(), cut.train.labels(0).end()),
              ElementsAre(4, 6));
  // The last question is never taken away.
  EXPECT_THAT(test::error_of([&] {
                read({{"long_prompts", "cut"}}, 2);
              }),
              HasSubstr("1 of 1 prompts fill"));
}

TEST_F(ChatData, SettingsOfChatsAreChecked) {
  const auto fault = [&](const std::string& key, const std::string& value) {
    return test::error_of([&] { read({{key, value}}); }, Fault::usage);
  };
  EXPECT_THAT(fault("chat_template", "nobody"), HasSubstr("which is no file and no known name"));
  EXPECT_THAT(fault("chat_template_kwargs", "[1]"), HasSubstr("no object of JSON"));
  EXPECT_THAT(fault("chat_date", "31.1.2026"), HasSubstr("expected a day as 2026-01-31"));
}

TEST_F(ChatData, TemplateThatIsNamedGoesWithTheResult) {
  EXPECT_EQ(read({}).task->chat_template(), "");
  EXPECT_THAT(read({{"chat_template", "vicuna"}}).task->chat_template(), HasSubstr("ASSISTANT: "));
  const int64_t own = read({}).task->setting_of_samples();
  EXPECT_NE(read({{"train_on_turns", "last"}}).task->setting_of_samples(), own);
  EXPECT_FALSE(read({}).task->depends_on_day());
}

}  // namespace
}  // namespace ferry
