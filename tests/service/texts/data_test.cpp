// The data of a training as its settings name them: what is held out, and whose labels they are.

#include "src/service/texts/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "src/service/texts/tokens.h"
#include "tests/files/test_files.h"
#include "tests/plan/settings.h"
#include "tests/text/model_files.h"

namespace ferry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST(TrainingData, SharedTinyShakespeare) {
  const auto file = test::shared_dir() / "data" / "tinyshakespeare" / "input.txt";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  const Texts texts = held_out(file, "0.1");
  const std::string train = texts_of(texts.train).at(0), eval = texts_of(texts.eval).at(0);
  EXPECT_EQ(train.back(), '\n');
  EXPECT_NEAR(static_cast<double>(eval.size()) / static_cast<double>(train.size() + eval.size()),
              0.1, 1e-3);
}

}  // namespace
}  // namespace ferry
