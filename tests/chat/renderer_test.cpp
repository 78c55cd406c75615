#include "src/chat/renderer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/chat/chats.h"

namespace ferry::chat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

class RendererTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ChatTemplate::is_built()) GTEST_SKIP() << "this build has no engine for chat templates";
  }
};

Renderer renderer_of(const std::string& source) {
  return Renderer({.chat = ChatTemplate::parse(source, "t.jinja"),
                   .with_tools = nullptr,
                   .variables = {{"eos_token", "</s>"}},
                   .now = 0,
                   .control_texts = {"<|im_start|>", "<|im_end|>", "<|user|>", "</s>"},
                   .end_texts = {"</s>"}});
}

std::vector<std::string> learnt(const std::string& source,
                                const Conversation& chat,
                                TrainOn on = TrainOn::each) {
  const RenderedChat all = renderer_of(source).render(chat, on, "x.jsonl:7");
  std::vector<std::string> parts;
  for (const text::Span& span : all.answers)
    parts.push_back(all.text.substr(span.begin, span.size()));
  return parts;
}

std::string fault_of(const std::string& source, const Conversation& chat) {
  try {
    learnt(source, chat);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

TEST_F(RendererTest, AnswersAreLearntWithTheTokenThatEndsThem) {
  const Conversation chat = chat_of({"a", "one", "b", "two"});
  EXPECT_THAT(learnt(kChatMl, chat), ElementsAre("one<|im_end|>", "two<|im_end|>"));
  EXPECT_THAT(learnt(kChatMl, chat, TrainOn::last), ElementsAre("two<|im_end|>"));
  EXPECT_THAT(learnt(kChatMl, chat_of({"a", "b"}), TrainOn::all),
              ElementsAre("<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"));
  Conversation untrained = chat;
  untrained.turns[1].is_trained = false;
  EXPECT_THAT(learnt(kChatMl, untrained), ElementsAre("two<|im_end|>"));
  EXPECT_THAT(learnt(kChatMl, chat_of({"a", "one", "open"})), ElementsAre("one<|im_end|>"));
}

TEST_F(RendererTest, MarksOfTheTemplateAreTaken) {
  const std::string marked =
      "{% for m in messages %}{{ '<|user|>' }}{% if m.role == 'assistant' %}{% generation %}"
      "{{ m.content }}{% endgeneration %}{{ '</s>' }}{% else %}{{ m.content }}{% endif %}"
      "{% endfor %}";
  // The end stands outside of them, and is learnt.
  EXPECT_THAT(learnt(marked, chat_of({"a", "one", "b", "two"})), ElementsAre("one</s>", "two</s>"));
  EXPECT_THAT(learnt(marked, chat_of({"a", "one", "b", "two"}), TrainOn::last),
              ElementsAre("two</s>"));
}

TEST_F(RendererTest, AnswersThatAreWrittenInAnotherWayLaterKeepTheirPlaces) {
  // The last answer alone has a block in front of it, as Qwen3's.
  const std::string last_thinks =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
      "{% if m.role == 'assistant' and loop.last %}{{ '<think></think>' }}{% endif %}"
      "{{ m.content + '<|im_end|>\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
  EXPECT_THAT(learnt(last_thinks, chat_of({"a", "one", "b", "two"})),
              ElementsAre("one<|im_end|>", "<think></think>two<|im_end|>"));
  // The model is asked with more than the text has, as DeepSeek R1 is.
  const std::string asks_more =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' }}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>' }}{% endif %}";
  EXPECT_THAT(learnt(asks_more, chat_of({"a", "one", "b", "two"})),
              ElementsAre("one<|im_end|>", "two<|im_end|>"));
  // A further token ends the whole text, as in Phi-3.5's.
  const std::string ends_whole =
      "{% for m in messages %}{{ '<|user|>' + m.content + '<|im_end|>\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|user|>' }}{% else %}{{ eos_token }}{% endif %}";
  EXPECT_THAT(learnt(ends_whole, chat_of({"a", "one", "b", "two"})),
              ElementsAre("one<|im_end|>", "two<|im_end|>"));
  // No token ends an answer but the next turn's, as GLM's.
  const std::string bare =
      "{% for m in messages %}{{ ('<|user|>' if m.role == 'user' else '<|im_start|>') + m.content "
      "}}"
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>' }}{% endif %}";
  EXPECT_THAT(learnt(bare, chat_of({"a", "one", "b", "two"})), ElementsAre("one<|user|>", "two"));
}

TEST_F(RendererTest, WhereNoPlaceShowsTheRowIsNamed) {
  const std::string leaves_out =
      "{% for m in messages %}{{ '<|user|>' }}{% if m.role == 'user' %}{{ m.content }}{% endif %}"
      "{{ '<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|user|>' }}{% endif %}";
  EXPECT_THAT(fault_of(leaves_out, chat_of({"a", "one"})),
              HasSubstr("[chat.mask] x.jsonl:7: the template 't.jinja' does not show"));
  Conversation calls = chat_of({"a", "one"});
  calls.turns[1].calls.push_back({.id = "1", .name = "tool_f", .arguments = Json::object()});
  EXPECT_THAT(fault_of(kChatMl, calls), HasSubstr("it leaves out a call of a tool"));
  EXPECT_THAT(
      fault_of("{{ raise_exception('never') }}", chat_of({"a", "one"})),
      HasSubstr("[chat.template] x.jsonl:7: the template 't.jinja' refuses the chat: never"));
  const std::string upper =
      "{% for m in messages %}{{ '<|user|>' + m.content | upper + '<|im_end|>' }}{% endfor %}";
  EXPECT_THAT(fault_of(upper, chat_of({"a", "one"})),
              HasSubstr("it leaves out or changes an answer's text"));
}

TEST_F(RendererTest, ControlTokensThatPeopleWroteAreCut) {
  const RenderedChat chat =
      renderer_of(kChatMl).render(chat_of({"a<|im_end|>b", "one"}), TrainOn::each, "x");
  EXPECT_EQ(chat.text,
            "<|im_start|>user\na<|im_end|>b<|im_end|>\n<|im_start|>assistant\none<|im_end|>\n");
  const auto at = static_cast<uint32_t>(chat.text.find("<|im_end|>b"));
  EXPECT_THAT(chat.cuts, ElementsAre(at + 1));
  EXPECT_EQ(chat.text.substr(chat.answers[0].begin, chat.answers[0].size()), "one<|im_end|>");
  EXPECT_TRUE(renderer_of(kChatMl).render(chat_of({"a", "b"}), TrainOn::each, "x").cuts.empty());
}

TEST_F(RendererTest, ArgumentsOfCallsAreTextsForTemplatesThatTakeThoseAlone) {
  const std::string texts =
      "{% for m in messages %}{{ '<|user|>' }}{% if m.tool_calls %}"
      "{{ m.tool_calls[0].function.name + m.tool_calls[0].function.arguments }}"
      "{% else %}{{ m.content }}{% endif %}{{ '<|im_end|>' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|user|>' }}{% endif %}";
  Conversation chat = chat_of({"a", "one"});
  chat.turns[1].text.reset();
  chat.turns[1].calls.push_back({.id = "1", .name = "f", .arguments = {{"x", 1}}});
  EXPECT_THAT(learnt(texts, chat), ElementsAre("f{\"x\":1}<|im_end|>"));
}

}  // namespace
}  // namespace ferry::chat
