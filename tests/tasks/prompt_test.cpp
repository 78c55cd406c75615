// Prompts: templates and verbalizers as people write them, the sequences that they make, and what
// is said of wrong ones.

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/files/hf/prompt_config.h"
#include "src/tasks/prompt/prompt_classification.h"
#include "src/tasks/prompt/prompt_template.h"
#include "tests/tasks/made.h"

namespace ferry {
namespace {

using test::Made;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTemplate = R"({"placeholder":"text_a"} the {"mask"} !)";
constexpr int32_t kFirstSoft = 1000;

/** The message of the Error that `run` throws. */
template <typename Run>
std::string error_of(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

std::string tokens(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::string joined;
  for (const int32_t id : ids)
    joined +=
        (joined.empty() ? "" : " ") +
        (id >= kFirstSoft ? "soft" + std::to_string(id - kFirstSoft) : tokenizer.id_to_token(id));
  return joined;
}

/** The sequence of an example in a template. */
struct Applied {
  Tokenizer tokenizer = test::small_tokenizer();
  PromptTemplate its;
  PromptedExample out;

  Applied(const std::string& text,
          const Example& example,
          int64_t max_length = 32,
          bool is_decoder = false)
      : its(text, tokenizer, is_decoder, kFirstSoft),
        out(its.apply(example, tokenizer, max_length, Offsets::keep)) {}
  std::string tokens() const { return ferry::tokens(tokenizer, out.ids); }
};

std::string refusal(const std::string& text, bool is_decoder = false) {
  return error_of([&] { Applied(text, {.text = "hello", .label = {}}, 32, is_decoder); });
}

TEST(PromptTemplate, PutsTheTextAndTheMaskBetweenTheModelsOwnTokens) {
  const Applied one(kTemplate, {.text = "hello world", .label = {}});
  EXPECT_EQ(one.tokens(), "[CLS] hello world the [MASK] ! [SEP]");
  EXPECT_EQ(one.out.asked, 4);
  EXPECT_FALSE(one.out.truncated);
  EXPECT_EQ(one.out.places[2].text, 0);
  EXPECT_EQ(one.out.places[2].bytes, (TextRange{6, 11}));
  EXPECT_EQ(one.out.places[4].text, -1);

  const Applied two(R"({'placeholder': 'text_b'} , {"mask": None} {"placeholder":"text_a"})",
                    {.text = "hello", .text_pair = "world", .label = {}});
  EXPECT_EQ(two.tokens(), "[CLS] world , [MASK] hello [SEP]");
  EXPECT_EQ(two.out.places[1].text, 1);
}

TEST(PromptTemplate, CutsTheLongestTextAndNothingElse) {
  const Example example = {.text = "hello hello hello hello", .text_pair = "world", .label = {}};
  const Applied cut(R"({"placeholder":"text_a"} {"placeholder":"text_b"} the {"mask"})", example,
                    7);
  EXPECT_EQ(cut.tokens(), "[CLS] hello hello world the [MASK] [SEP]");
  EXPECT_TRUE(cut.out.truncated);
  EXPECT_EQ(cut.out.asked, 5);
  const Applied kept(
      R"({"placeholder":"text_a", "shortenable": False} {"placeholder":"text_b"} {"mask"})",
      {.text = "hello hello", .text_pair = "world world", .label = {}}, 6);
  EXPECT_EQ(kept.tokens(), "[CLS] hello hello world [MASK] [SEP]");
  EXPECT_THAT(error_of([&] { Applied(kTemplate, example, 5); }),
              HasSubstr("the template alone has 5 tokens, and max_length is 5"));
}

TEST(PromptTemplate, ADecoderIsAskedAtItsLastToken) {
  const Applied asked(kTemplate, {.text = "hello world", .label = {}}, 32, /*is_decoder=*/true);
  EXPECT_EQ(asked.tokens(), "[CLS] hello world the");
  EXPECT_EQ(asked.out.asked, 3);
  EXPECT_TRUE(asked.its.leaves_words_out());
  EXPECT_THAT(refusal(R"({"mask"} {"placeholder":"text_a"})", /*is_decoder=*/true),
              HasSubstr("a decoder reads only what comes before it - put {\"mask\"} at its end"));
}

TEST(PromptTemplate, SoftTokensFollowTheVocabulary) {
  const Applied soft(
      R"({"soft": None} {"placeholder":"text_a"} {"soft": "the world", "soft_id": 1} {"mask"} )"
      R"({"soft_id": 1} {"soft", "duplicate": 2} {"soft": None, "duplicate": 2, "same": True})",
      {.text = "hello", .label = {}});
  EXPECT_EQ(soft.tokens(),
            "[CLS] soft0 hello soft1 soft2 [MASK] soft1 soft2 soft3 soft4 soft5 soft5 [SEP]");
  const int32_t the = soft.tokenizer.token_to_id("the"),
                world = soft.tokenizer.token_to_id("world");
  EXPECT_THAT(soft.its.soft_tokens(), ElementsAre(IsEmpty(), ElementsAre(the), ElementsAre(world),
                                                  IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(PromptTemplate, SaysWhatIsWrong) {
  EXPECT_THAT(refusal(R"({"placeholder":"text_a"} the)"), HasSubstr("asks for no word - write"));
  EXPECT_THAT(refusal(R"({"placeholder":"text_a"} {"mask"} {"mask"})"),
              HasSubstr("asks for 2 words"));
  EXPECT_THAT(refusal(R"(the {"mask"})"), HasSubstr("shows no text of the data"));
  EXPECT_THAT(refusal(R"({"placeholder":"title"} {"mask"})"),
              HasSubstr("names a placeholder 'title' - there are text_a and text_b"));
  EXPECT_THAT(refusal(R"({"meta":"title"} {"mask"})"), HasSubstr("--text-column"));
  EXPECT_THAT(refusal(R"({"placeholder":"text_a" {"mask"})"), HasSubstr("is no list of keys"));
  EXPECT_THAT(refusal(R"({"placeholder":"text_a"} {"mask")"), HasSubstr("does not close"));
  EXPECT_THAT(refusal(R"({"placeholder":"text_a", "bold": 1} {"mask"})"),
              HasSubstr("has the key 'bold'"));
  EXPECT_THAT(refusal(R"({"placeholder":"text_a"} {"special": "<end>"} {"mask"})"),
              HasSubstr("no token '<end>'"));
  EXPECT_THAT(refusal(R"({"placeholder":"text_b"} {"mask"})"), HasSubstr("--text-pair-column"));

  auto without_mask = test::small_model();
  without_mask["added_tokens"].erase(2);
  without_mask["model"]["vocab"].erase("[MASK]");
  const Tokenizer tokenizer = test::open_model(without_mask);
  EXPECT_THAT(error_of([&] { PromptTemplate(kTemplate, tokenizer, false, kFirstSoft); }),
              HasSubstr("no mask token - prompts are for masked models"));
}

TEST(Verbalizer, IsReadAsJsonOrFromFilesOfEitherKind) {
  const LabelMap labels({"bad", "good"});
  const auto words = [&](const std::string& option) {
    return words_of_labels(read_verbalizer(option), labels);
  };
  const auto expected = ElementsAre(ElementsAre("the"), ElementsAre("hello", "world"));
  EXPECT_THAT(words(R"({"good": ["hello", "world"], "bad": "the"})"), expected);
  EXPECT_THAT(words(R"([["the"], ["hello", "world"]])"), expected);
  EXPECT_THAT(words(""), ElementsAre(ElementsAre("bad"), ElementsAre("good")));
  test::TemporaryDirectory directory;
  directory.write("words.txt", "a\nb\n\nthe\nhello, world\n");
  directory.write("words.json", R"([{"bad": "a", "good": "b"},
                                    {"bad": ["the"], "good": ["hello", "world"]}])");
  for (const char* file : {"words.txt:2", "words.json:2"})
    EXPECT_THAT(words((directory.path() / file).string()), expected) << file;
  EXPECT_THAT(error_of([&] { words((directory.path() / "words.txt:3").string()); }),
              HasSubstr("has 2 verbalizers, and number 3 is asked for"));
}

TEST(Verbalizer, SaysWhatIsWrong) {
  const LabelMap labels({"bad", "good"});
  const auto refused = [&](const std::string& option) {
    return error_of([&] { words_of_labels(read_verbalizer(option), labels); });
  };
  EXPECT_THAT(refused(R"({"good": ["hello"]})"), HasSubstr("no words stand for the label 'bad'"));
  EXPECT_THAT(refused(R"({"good": ["hello"], "bad": []})"), HasSubstr("no words stand for"));
  EXPECT_THAT(refused(R"({"fine": ["hello"]})"),
              HasSubstr("'fine', which is no label - the labels are bad, good"));
  EXPECT_THAT(refused(R"([["hello"]])"), HasSubstr("words for 1 labels, and the data have 2"));
  EXPECT_THAT(refused(R"({"good": )"), HasSubstr("is no JSON"));
  EXPECT_THAT(refused("great"), HasSubstr("neither JSON nor a file"));
  EXPECT_THAT(error_of([] {
                words_of_labels({}, LabelMap({"0", "1"}));
              }),
              HasSubstr("--verbalizer"));
  const Tokenizer tokenizer = test::small_tokenizer();
  EXPECT_THAT(error_of([&] { tokens_of_words({{"xyzzy"}}, WordTokens::first, tokenizer); }),
              HasSubstr("no tokens for the word 'xyzzy'"));
}

TaskSettings settings_of(const Tokenizer& tokenizer, const std::string& text = kTemplate) {
  PromptSettings prompt;
  prompt.text = text;
  prompt.verbalizer = read_verbalizer(R"({"bad": "the", "good": ["hello", "world"]})");
  prompt.tokenizer = &tokenizer;
  prompt.n_words = static_cast<int32_t>(tokenizer.vocab_size());
  TaskSettings settings;
  settings.prompt = std::make_shared<const PromptSettings>(std::move(prompt));
  return settings;
}

TEST(PromptClassification, AsksOneTokenOfEachSequenceAndOneOfTheTail) {
  const Tokenizer tokenizer = test::small_tokenizer();
  const Made made("prompt-classification",
                  test::classes(ProblemType::single_label, {"bad", "good"}),
                  {{.text = "hello", .label = {.class_id = 1}},
                   {.text = "the world", .label = {.class_id = 0}}},
                  settings_of(tokenizer), 16);
  EXPECT_EQ(made.task->loss(), LossKind::prompt);
  EXPECT_EQ(made.task->n_labels(), 2);
  EXPECT_THAT(made.batch.labels, ElementsAre(1, 0));
  const int32_t mask = tokenizer.special_ids().mask;
  ASSERT_EQ(std::ssize(made.batch.label_rows), made.batch.n_seqs());
  for (size_t s = 0; s < 2; ++s)
    EXPECT_EQ(made.batch.input_ids[static_cast<size_t>(made.batch.label_rows[s])], mask);
  EXPECT_EQ(made.batch.label_rows[2], made.batch.cu_seqlens[2]);
  const auto asked = made.task->asked_tokens(made.batch, 0, tokenizer);
  ASSERT_EQ(asked.size(), 1);
  EXPECT_EQ(asked[0].target, "hello");
}

TEST(PromptClassification, AModelKeepsItsTemplateAndItsWords) {
  const Tokenizer tokenizer = test::small_tokenizer();
  const TaskSettings settings = settings_of(tokenizer);
  const auto task = task_kind("prompt-classification")
                        .make(test::classes(ProblemType::single_label, {"bad", "good"}), settings);
  HfConfig config = HfConfig::parse(
      R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})", "config.json");
  task->write(config);
  const HfConfig written = HfConfig::parse(config.json().dump(), "config.json");
  EXPECT_EQ(kind_of_model(written).name, "prompt-classification");
  const auto prompt = read_prompt_config(written);
  ASSERT_TRUE(prompt);
  EXPECT_EQ(prompt->text, kTemplate);
  EXPECT_THAT(prompt->words, ElementsAre(ElementsAre("the"), ElementsAre("hello", "world")));
  const auto id = [&](const char* token) { return tokenizer.token_to_id(token); };
  EXPECT_THAT(prompt->head.labels.words,
              ElementsAre(ElementsAre(ElementsAre(id("the"))),
                          ElementsAre(ElementsAre(id("hello")), ElementsAre(id("world")))));
  // Without a word of the settings.
  PromptSettings none;
  none.tokenizer = &tokenizer;
  none.n_words = static_cast<int32_t>(tokenizer.vocab_size());
  TaskSettings plain;
  plain.prompt = std::make_shared<const PromptSettings>(none);
  const auto again = task_kind("prompt-classification").of_model(written, plain);
  std::vector<TokenizedExample> out;
  again->encode({.text = "world", .label = {}}, tokenizer, 16, out);
  EXPECT_EQ(tokens(tokenizer, out.at(0).ids), "[CLS] world the [MASK] ! [SEP]");

  auto damaged = config.json();
  damaged["ferry_prompt"]["label_tokens"].erase(0);
  EXPECT_THAT(error_of([&] { read_prompt_config(HfConfig::parse(damaged.dump(), "config.json")); }),
              HasSubstr("words for another number of labels"));
}

TEST(PromptClassification, TakesPairsWhereTheTemplateShowsThem) {
  const Tokenizer tokenizer = test::small_tokenizer();
  LabelScheme scheme = test::classes(ProblemType::single_label, {"bad", "good"});
  scheme.has_pairs = true;
  const TaskKind& kind = task_kind("prompt-classification");
  EXPECT_EQ(kind.make(scheme, settings_of(tokenizer))->scheme().has_pairs, false);
  scheme.has_pairs = false;
  const auto task = kind.make(
      scheme,
      settings_of(tokenizer, R"({"placeholder":"text_a"} {"mask"} {"placeholder":"text_b"})"));
  EXPECT_EQ(task->scheme().has_pairs, true);
  HfConfig config = HfConfig::parse(R"({"model_type": "bert"})", "config.json");
  task->write(config);
  EXPECT_EQ(config.json()[std::string(kPairsKey)], true);
}

TEST(PromptClassification, AsksALanguageModelThatWasNotTrainedSo) {
  const Tokenizer tokenizer = test::small_tokenizer();
  const HfConfig config = HfConfig::parse(
      R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})", "config.json");
  const TaskKind& kind = task_kind("prompt-classification");
  EXPECT_THAT(kind.of_model(config, settings_of(tokenizer))->scheme().labels.names(),
              ElementsAre("bad", "good"));
  PromptSettings nameless;
  nameless.text = kTemplate;
  nameless.verbalizer = read_verbalizer(R"([["the"], ["hello"]])");
  TaskSettings settings;
  settings.prompt = std::make_shared<const PromptSettings>(nameless);
  EXPECT_THAT(error_of([&] { kind.of_model(config, settings); }), HasSubstr("have no names"));
}

TEST(PromptClassification, IsForTextsWithOneLabelEach) {
  const Tokenizer tokenizer = test::small_tokenizer();
  EXPECT_THAT(error_of([&] {
                task_kind("prompt-classification")
                    .make(test::classes(ProblemType::multi_label, {"bad", "good"}),
                          settings_of(tokenizer));
              }),
              HasSubstr("texts with one label each"));
}

}  // namespace
}  // namespace ferry
