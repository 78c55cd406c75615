#include "src/chat/encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/chat/template_source.h"
#include "tests/chat/chats.h"
#include "tests/text/model_files.h"

namespace ferry::chat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Ids of the small model's tokens.
constexpr int kSep = 3, kHello = 5, kWorld = 6, kThe = 13, kOpen = 17, kClose = 18, kSepWord = 19;

constexpr const char* kTemplate = "{% for m in messages %}{{ m.content + ' [SEP] ' }}{% endfor %}";

class ChatEncoderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ChatTemplate::is_built()) GTEST_SKIP() << "this build has no engine for chat templates";
    model_.write("tokenizer.json", test::small_model().dump());
    model_.write("tokenizer_config.json", R"({"eos_token": "[SEP]"})");
    model_.write("chat_template.jinja", kTemplate);
  }

  ChatEncoder encoder(const ChatSettings& settings = {}) const {
    return {settings, model_.path(), Tokenizer::open(model_.path())};
  }
  std::optional<EncodedChat> encode(const std::vector<std::string>& texts,
                                    int64_t max_length,
                                    const ChatSettings& settings = {}) const {
    return encoder(settings).encode(chat_of(texts), Tokenizer::open(model_.path()), max_length,
                                    "x.jsonl:7");
  }

  test::TemporaryDirectory model_;
};

std::vector<std::pair<int, int>> places(const EncodedChat& chat) {
  std::vector<std::pair<int, int>> all;
  for (const text::Span& span : chat.answers)
    all.emplace_back(span.begin, span.end);
  return all;
}

TEST_F(ChatEncoderTest, TokensOfAnswersAreLearntWithTheEnd) {
  const auto chat = encode({"hello", "world", "the", "hello world"}, 100);
  EXPECT_THAT(chat->ids, ElementsAre(kHello, kSep, kWorld, kSep, kThe, kSep, kHello, kWorld, kSep));
  EXPECT_THAT(places(*chat), ElementsAre(std::pair(2, 4), std::pair(6, 9)));
  EXPECT_FALSE(chat->was_cut);
  const auto last = encode({"hello", "world", "the", "hello"}, 100, {.train_on = TrainOn::last});
  EXPECT_THAT(places(*last), ElementsAre(std::pair(6, 8)));
  const auto all = encode({"hello", "world"}, 100, {.train_on = TrainOn::all});
  EXPECT_THAT(places(*all), ElementsAre(std::pair(0, 4)));
}

TEST_F(ChatEncoderTest, CuttingLeavesNoAnswerWithoutItsQuestion) {
  const std::vector<std::string> texts = {"hello", "world", "the", "hello world"};
  const auto shorter = encode(texts, 8);
  EXPECT_THAT(shorter->ids, ElementsAre(kHello, kSep, kWorld, kSep));
  EXPECT_THAT(places(*shorter), ElementsAre(std::pair(2, 4)));
  EXPECT_TRUE(shorter->was_cut);
  // The first answer alone may be cut itself.
  const auto first = encode(texts, 3);
  EXPECT_THAT(first->ids, ElementsAre(kHello, kSep, kWorld));
  EXPECT_THAT(places(*first), ElementsAre(std::pair(2, 3)));
  EXPECT_FALSE(encode(texts, 2));
  EXPECT_FALSE(encode(texts, 6, {.train_on = TrainOn::last}));
}

TEST_F(ChatEncoderTest, TextsOfPeopleAreNoControlTokens) {
  const ChatEncoder encoder = this->encoder();
  const Tokenizer tokenizer = Tokenizer::open(model_.path());
  const auto chat = encoder.encode(chat_of({"hello [SEP]", "world"}), tokenizer, 100, "x.jsonl:7");
  EXPECT_THAT(chat->ids, ElementsAre(kHello, kOpen, kSepWord, kClose, kSep, kWorld, kSep));
  EXPECT_THAT(places(*chat), ElementsAre(std::pair(5, 7)));
  EXPECT_THAT(encoder.take_notes(),
              ElementsAre(HasSubstr("1 chat has control tokens of the model in what people wrote, "
                                    "the first is x.jsonl:7")));
  EXPECT_THAT(encoder.take_notes(), IsEmpty());
}

TEST_F(ChatEncoderTest, AnEndIsAddedWhereTheTemplateHasNone) {
  model_.write("chat_template.jinja", "{% for m in messages %}{{ m.content + ' ' }}{% endfor %}");
  const auto chat = encode({"hello", "world"}, 100);
  EXPECT_THAT(chat->ids, ElementsAre(kHello, kWorld, kSep));
  EXPECT_THAT(places(*chat), ElementsAre(std::pair(1, 3)));
}

TEST_F(ChatEncoderTest, TemplatesComeFromTheModelFromNamesAndFromFiles) {
  EXPECT_EQ(encoder().template_text(), kTemplate);
  EXPECT_THAT(encoder({.chat_template = "chatml"}).template_text(), HasSubstr("<|im_start|>"));
  model_.write("own.jinja", "{{ messages[0].content }}");
  const std::string file = (model_.path() / "own.jinja").string();
  EXPECT_EQ(encoder({.chat_template = file}).template_text(), "{{ messages[0].content }}");
  EXPECT_THROW(encoder({.chat_template = "qwen99"}), Error);
  std::filesystem::remove(model_.path() / "chat_template.jinja");
  // Data without chats need no template.
  const ChatEncoder none = encoder();
  try {
    none.encode(chat_of({"a", "b"}), Tokenizer::open(model_.path()), 100, "x");
    ADD_FAILURE() << "there is no template";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("has no chat template - name one with --chat-template"));
  }
  model_.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "default", "template": "d"},
                                     {"name": "tool_use", "template": "t"}]})");
  EXPECT_EQ(template_of_model(model_.path())->text, "d");
  EXPECT_EQ(template_of_model(model_.path())->tools_text, "t");
}

TEST_F(ChatEncoderTest, KeyChangesWithWhatDecidesTokens) {
  const uint64_t plain = encoder().key();
  EXPECT_EQ(encoder().key(), plain);
  EXPECT_EQ(encoder({.now = 5}).key(), plain);
  EXPECT_NE(encoder({.train_on = TrainOn::last}).key(), plain);
  EXPECT_NE(encoder({.chat_template = "chatml"}).key(), plain);
  EXPECT_NE(encoder({.template_variables = {{"enable_thinking", false}}}).key(), plain);
  model_.write("chat_template.jinja", "{{ strftime_now('%d') }}");
  EXPECT_NE(encoder({.now = 5}).key(), encoder({.now = 500000}).key());
}

/** An adapter's directory may have a tokenizer, and no generation_config.json. */
TEST_F(ChatEncoderTest, AnAdapterEndsItsAnswersAsItsModelDoes) {
  const test::TemporaryDirectory base, adapter;
  base.write("config.json", R"({"model_type": "llama", "vocab_size": 9})");
  base.write("generation_config.json", R"({"eos_token_id": 2})");
  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"})
    std::filesystem::copy_file(model_.path() / file, adapter.path() / file);
  adapter.write("adapter_config.json", R"({"peft_type": "LORA", "r": 2, "target_modules": ["q"]})");
  const HfDirectory model =
      HfDirectory::open_adapter(adapter.path(), base.path(), /*needs_weights=*/false);
  const Tokenizer tokenizer = Tokenizer::open(adapter.path());
  EXPECT_EQ(ModelFiles(model).generation_config, base.path() / "generation_config.json");
  EXPECT_EQ(ModelFiles(model).tokenizer, adapter.path());
  EXPECT_NE(ChatEncoder({}, model, tokenizer).key(),
            ChatEncoder({}, adapter.path(), tokenizer).key());
}

TEST_F(ChatEncoderTest, KnownTemplatesShowTheirAnswers) {
  for (const KnownTemplate& known : known_templates()) {
    const Renderer renderer({.chat = ChatTemplate::parse(std::string(known.text), "known"),
                             .with_tools = nullptr,
                             .variables = {{"bos_token", "<s>"}, {"eos_token", "</s>"}},
                             .now = 0,
                             .control_texts = {"<s>", "</s>"},
                             .end_texts = {"</s>"}});
    const RenderedChat chat =
        renderer.render(chat_of({"Why?", "So.", "And?", "Yes."}), TrainOn::each, "x");
    ASSERT_EQ(chat.answers.size(), 2u) << known.name;
    const auto part = [&](size_t i) {
      return chat.text.substr(chat.answers[i].begin, chat.answers[i].size());
    };
    EXPECT_THAT(part(0), testing::StartsWith("So.")) << known.name;
    EXPECT_THAT(part(1), testing::StartsWith("Yes.")) << known.name;
    EXPECT_GT(part(0).size(), 3u) << known.name << " has no end";
  }
}

}  // namespace
}  // namespace ferry::chat
