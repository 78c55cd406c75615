// Tags for words: which token has a word's tag, how tags are scored, and how they are said.

#include <gmock/gmock.h>

#include "src/data/read/reader.h"
#include "src/tasks/entities.h"
#include "tests/tasks/made.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;
using test::Made;
using test::metric;
using ::testing::ElementsAre;

/** Words with a space between, and their tags. */
Example tagged(const std::vector<std::string>& words, std::vector<int32_t> tags) {
  Example example;
  for (const std::string& word : words) {
    if (!example.words.empty()) example.text += ' ';
    const auto begin = static_cast<uint32_t>(example.text.size());
    example.text += word;
    example.words.push_back({begin, static_cast<uint32_t>(example.text.size())});
  }
  example.label.tags = std::move(tags);
  return example;
}

LabelScheme names() {
  return {.problem = ProblemType::tags, .labels = LabelMap({"O", "B-PER", "I-PER"})};
}

/** Outputs that are sure of these classes, of three; -1 of none. */
std::vector<float> sure_of(const std::vector<int>& classes) {
  std::vector<float> logits;
  for (int c : classes)
    for (int i = 0; i < 3; ++i)
      logits.push_back(i == c ? 5.0f : 0.0f);
  return logits;
}

std::vector<Entity> entities(std::vector<std::string_view> tags) {
  return entities_of(tags);
}

TEST(TokenClassification, TheFirstTokenOfAWordHasItsTag) {
  // [CLS] un ##aff ##able world , hello [SEP]
  const Made made("token-classification", names(),
                  {tagged({"unaffable", "world,", "hello"}, {1, 2, 0}), tagged({"the"}, {0})});
  EXPECT_THAT(made.data.labels(0),
              ElementsAre(kNoLabel, 1, kNoLabel, kNoLabel, 2, kNoLabel, 0, kNoLabel));
  EXPECT_THAT(made.data.labels(1), ElementsAre(kNoLabel, 0, kNoLabel));
  EXPECT_EQ(made.batch.n_label_items, 4);
  EXPECT_EQ(made.batch.labels.size(), made.batch.input_ids.size());
  EXPECT_EQ(made.batch.labels[9], 0);
  EXPECT_EQ(made.batch.labels[11], kNoLabel);  // the tail
}

TEST(TokenClassification, WordsThatAreCutOffHaveNoTag) {
  const Made made("token-classification", names(),
                  {tagged({"hello", "world", "the", "cafe", "un", "hello", "world", "i"},
                          {0, 0, 0, 0, 0, 0, 1, 2})});
  EXPECT_EQ(made.data.n_truncated(), 1);
  EXPECT_EQ(made.batch.n_label_items, 6);
  const auto scorer = made.scorer();
  const auto answers = test::answers_to(*scorer, made, sure_of({0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ((*answers[0].predicted)["tags"],
            ordered_json({"O", "O", "O", "O", "O", "O", nullptr, nullptr}));
  EXPECT_EQ(metric(scorer->metrics(0), "accuracy"), 1);
}

TEST(TokenClassification, AWordThatIsNothingToTheTokenizerHasNoTag) {
  const Made made("token-classification", names(),
                  {tagged({"hello", "\u200b", "world"}, {1, 0, 2})});
  EXPECT_THAT(made.data.labels(0), ElementsAre(kNoLabel, 1, 2, kNoLabel));
}

/** Also before the first word, whatever the tokenizer does with texts. */
TEST(TokenClassification, ASpaceThatIsATokenBelongsToTheNextWord) {
  nlohmann::json model = nlohmann::json::parse(R"({
    "version": "1.0", "added_tokens": [], "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {"type": "BPE", "vocab": {"Ġ": 0, "a": 1, "b": 2, "Ġa": 3}, "merges": ["Ġ a"]}})");
  const auto task = task_kind("token-classification").make(names(), {});
  EXPECT_TRUE(task->reads_words());
  for (const bool adds_prefix_space : {true, false}) {
    model["pre_tokenizer"]["add_prefix_space"] = adds_prefix_space;
    const Tokenizer tokenizer = test::open_model(model);
    std::vector<TokenizedExample> samples;
    task->encode(tagged({"a", "b", "ab"}, {1, 2, 0}), tokenizer, 16, samples);
    EXPECT_THAT(samples[0].ids, ElementsAre(3, 0, 2, 3, 2));  // Ġa Ġ b Ġa b
    EXPECT_THAT(samples[0].labels, ElementsAre(1, 2, kNoLabel, 0, kNoLabel));
  }
}

TEST(TokenClassification, EntitiesAreScoredAndSaid) {
  const Made made("token-classification", names(),
                  {tagged({"hello", "unaffable", "café"}, {0, 1, 2})});
  // [CLS] hello un ##aff ##able cafe [SEP]: the entity ends too early.
  const auto scorer = made.scorer();
  const auto answers = test::answers_to(*scorer, made, sure_of({0, 0, 1, 2, 2, 0, 0}));
  EXPECT_EQ(metric(scorer->metrics(0), "f1"), 0);
  EXPECT_NEAR(metric(scorer->metrics(0), "accuracy"), 2.0 / 3, 1e-12);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].words, "unaffable (PER 0.99)");
  EXPECT_EQ(answers[0].truth, "unaffable café (PER)");
  const ordered_json entity = (*answers[0].predicted)["entities"][0];
  EXPECT_EQ(entity["text"], "unaffable");
  EXPECT_EQ(entity["label"], "PER");
  EXPECT_EQ(entity["start"], 6);
  EXPECT_EQ(entity["end"], 15);
  EXPECT_EQ((*answers[0].compared)["label"], ordered_json({"O", "B-PER", "I-PER"}));
  EXPECT_EQ((*answers[0].compared)["predicted"], ordered_json({"O", "B-PER", "O"}));
}

TEST(TokenClassification, PlainTextsAreSplitAtSpaces) {
  const Made made("token-classification", names(), {{.text = " café  hello\tworld "}});
  EXPECT_EQ(made.batch.n_label_items, 0);
  const auto scorer = made.scorer();
  const auto answers = test::answers_to(*scorer, made, sure_of({0, 1, 0, 1, 0}));
  EXPECT_EQ(answers[0].words, "café (PER 0.99), world (PER 0.99)");
  EXPECT_EQ((*answers[0].predicted)["entities"][1]["start"], 13);  // in characters
  EXPECT_TRUE(answers[0].truth.empty());
}

TEST(TokenClassification, SignsAroundAWordOfAPlainTextAreWordsOfTheirOwn) {
  const auto words_of = [](const std::string& text) {
    const Made made("token-classification", names(), {{.text = text}});
    const auto logits = sure_of(std::vector<int>(made.batch.input_ids.size(), 0));
    const auto answers = test::answers_to(*made.scorer(), made, logits);
    return (*answers[0].predicted)["words"];
  };
  EXPECT_EQ(words_of("hello (world)."), ordered_json({"hello", "(", "world", ")", "."}));
  EXPECT_EQ(words_of("the U.S. i. world, hello?!"),
            ordered_json({"the", "U.S.", "i.", "world", ",", "hello", "?", "!"}));
  EXPECT_EQ(words_of("\"hello\" world..."),
            ordered_json({"\"", "hello", "\"", "world", ".", ".", "."}));
  EXPECT_EQ(words_of("... un-a"), ordered_json({".", ".", ".", "un-a"}));
}

TEST(TokenClassification, TagsThatAreNoEntitiesAreSaidByWord) {
  const Made made("token-classification",
                  {.problem = ProblemType::tags, .labels = LabelMap({"DET", "NOUN", "VERB"})},
                  {tagged({"the", "world"}, {0, 1})});
  const auto answers = test::answers_to(*made.scorer(), made, sure_of({0, 0, 2, 0}));
  EXPECT_EQ(answers[0].words, "the/DET world/VERB");
  EXPECT_EQ(answers[0].truth, "the/DET world/NOUN");
  EXPECT_FALSE(answers[0].predicted->contains("entities"));
}

TEST(TokenClassification, TagsThatAreNoEntitiesAreScoredByWord) {
  const Made made("token-classification",
                  {.problem = ProblemType::tags, .labels = LabelMap({"0", "1", "2"})},
                  {tagged({"the", "world", "hello"}, {0, 1, -1})});
  // The last word has no tag, and no loss.
  EXPECT_EQ(made.batch.n_label_items, 2);
  EXPECT_THAT(made.data.labels(0), ElementsAre(kNoLabel, 0, 1, kNoLabel, kNoLabel));
  const auto scorer = made.scorer();
  const auto answers = test::answers_to(*scorer, made, sure_of({0, 0, 2, 1, 0}));
  const auto metrics = scorer->metrics(0);
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metric(metrics, "accuracy"), 0.5);
  EXPECT_NEAR(metric(metrics, "f1_macro"), 1.0 / 3, 1e-12);
  EXPECT_THAT(made.task->metric_names(), ElementsAre("loss", "accuracy", "f1_macro"));
  EXPECT_EQ((*answers[0].compared)["label"], ordered_json({"0", "1", nullptr}));
}

TEST(TokenClassification, AnUntrainedModelIsRefused) {
  const auto config = HfConfig::parse(R"({"model_type": "bert"})", "config.json");
  EXPECT_THROW(task_kind("token-classification").of_model(config, {}), Error);
}

TEST(Entities, OfAllWaysToWriteThem) {
  const std::vector<Entity> two = {{"PER", 0, 1}, {"LOC", 2, 2}};
  EXPECT_EQ(entities({"B-PER", "I-PER", "B-LOC"}), two);
  EXPECT_EQ(entities({"I-PER", "I-PER", "I-LOC"}), two);
  EXPECT_EQ(entities({"B-PER", "E-PER", "S-LOC"}), two);
  EXPECT_EQ(entities({"I-PER", "B-PER"}), (std::vector<Entity>{{"PER", 0, 0}, {"PER", 1, 1}}));
  EXPECT_EQ(entities({"O", "B", "I", "O"}), (std::vector<Entity>{{"_", 1, 2}}));
  EXPECT_EQ(entities({"B-a-b", "I-a-b"}), (std::vector<Entity>{{"a-b", 0, 1}}));
  EXPECT_TRUE(entities({"O", "O"}).empty());
  EXPECT_TRUE(entities({}).empty());
}

}  // namespace
}  // namespace ferry
