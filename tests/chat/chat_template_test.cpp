#include "src/chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace ferry::chat {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

class ChatTemplateTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ChatTemplate::is_built()) GTEST_SKIP() << "this build has no engine for chat templates";
  }
};

Rendering rendering_of(const std::string& source, const Json& variables = Json::object()) {
  return ChatTemplate::parse(source, "test")->render(variables, 0);
}
std::string text_of(const std::string& source, const Json& variables = Json::object()) {
  return rendering_of(source, variables).text;
}
/** The reason that a template gives up for; empty where it gives a text. */
std::string reason_of(const std::string& source, const Json& variables = Json::object()) {
  try {
    text_of(source, variables);
  } catch (const TemplateRaised& e) {
    return e.what();
  }
  return {};
}
std::string fault_of(const std::string& source) {
  try {
    ChatTemplate::parse(source, "odd.jinja");
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

TEST_F(ChatTemplateTest, TurnsBecomeOneText) {
  const Json chat = {
      {"messages",
       {{{"role", "user"}, {"content", "Hi"}}, {{"role", "assistant"}, {"content", "Hello"}}}},
      {"eos_token", "</s>"}};
  EXPECT_EQ(text_of("{% for m in messages %}\n"
                    "  {{- m.role }}: {{ m['content'] + eos_token }}\n"
                    "{% endfor %}\n",
                    chat),
            "user: Hi</s>\nassistant: Hello</s>\n");
}

TEST_F(ChatTemplateTest, MarkedPartsKeepTheirPlacesAndTakeWhiteSpaceAsTheirTagsDo) {
  const auto parts = [](const std::string& source) {
    const Rendering all = rendering_of(source);
    std::vector<std::string> marked;
    for (const text::Span& range : all.generated)
      marked.emplace_back(std::string_view(all.text).substr(range.begin, range.size()));
    return marked;
  };
  EXPECT_THAT(parts("a {% generation %}b{% endgeneration %} c{%generation%}d{%endgeneration%}"),
              ElementsAre("b", "d"));
  EXPECT_EQ(text_of("a {%- generation -%} b {%- endgeneration -%} c"), "abc");
  EXPECT_EQ(text_of("a\n  {% generation %}\nb\n  {% endgeneration %}\nc"), "a\nb\nc");
  EXPECT_TRUE(parts("{% generation %}{% endgeneration %}").empty());
  EXPECT_TRUE(ChatTemplate::parse("{%- generation %}x{% endgeneration %}", "t")->marks_answers());
  EXPECT_FALSE(ChatTemplate::parse("generation", "t")->marks_answers());
}

TEST_F(ChatTemplateTest, RefusesWherePythonRaises) {
  EXPECT_THAT(reason_of("{{ raise_exception('no tools here') }}"), HasSubstr("no tools here"));
  EXPECT_THAT(reason_of("{{ a.b }}"), HasSubstr("undefined"));
  EXPECT_THAT(reason_of("{{ 'a' + b }}"), HasSubstr("not possible"));
  EXPECT_THAT(reason_of("{{ 'a' + c }}", {{"c", nullptr}}), HasSubstr("not possible"));
  EXPECT_THAT(reason_of("{{ 'a' + c }}", {{"c", {{"d", 1}}}}), HasSubstr("not possible"));
  EXPECT_THAT(reason_of("{% set x = l.append(1) %}", {{"l", {1}}}), HasSubstr("append"));
  EXPECT_THAT(reason_of("{{ l | map('upper') | tojson }}", {{"l", {"a"}}}), HasSubstr("JSON"));
  EXPECT_THAT(reason_of("{{ x | tojson }}"), HasSubstr("JSON"));
}

TEST_F(ChatTemplateTest, PrintsAsPythonPrints) {
  EXPECT_EQ(text_of("{{ none }} {{ true }} {{ x }}|{{ 1.0 }} {{ f }} {{ ['a\\n', \"it's\"] }}",
                    {{"f", 1e16}}),
            "None True |1.0 1e+16 ['a\\n', \"it's\"]");
  EXPECT_EQ(text_of("{{ d }} {{ d | tojson }}", {{"d", {{"k", {1, nullptr}}, {"ä", "<\""}}}}),
            "{'k': [1, None], 'ä': '<\"'} {\"k\": [1, null], \"ä\": \"<\\\"\"}");
  EXPECT_EQ(text_of("{{ 'äöü'[1] }}{{ 'äöü'[-1] }}{{ 'äöü'[::-1] }}{{ 'äöü' | length }}"),
            "öüüöä3");
  EXPECT_EQ(text_of("[{{ '\u3000 x \u00a0' | trim }}]{{ ' a  b ' .split() | join('-') }}"),
            "[x]a-b");
  EXPECT_EQ(text_of("{{ 'ÄB' | lower }}{{ none ~ 1 }}"), "äbNone1");
  EXPECT_EQ(text_of("{{ '<' | safe + '<' }}"), "<&lt;");
  EXPECT_EQ(text_of("{{ -7 % 3 }} {{ 7 / 2 }} {{ [1, 2] + [3] == [1, 2, 3] }}"), "2 3.5 True");
}

TEST_F(ChatTemplateTest, RoundsOfALoopAndMacrosHaveVariablesOfTheirOwn) {
  EXPECT_EQ(text_of("{% for i in [1, 2] %}{% if i == 1 %}{% set x = 'set' %}{% endif %}"
                    "{{ x is defined }}{% endfor %}"),
            "TrueFalse");
  EXPECT_EQ(text_of("{% macro f(a, b=2, c=3) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1, c=5) }}"),
            "125");
  EXPECT_EQ(text_of("{% set n = namespace(x=0) %}{% for i in [1, 2] %}{% set n.x = n.x + i %}"
                    "{% endfor %}{{ n.x }}"),
            "3");
}

TEST_F(ChatTemplateTest, DateIsThatOfTheMoment) {
  const auto chat = ChatTemplate::parse("{{ strftime_now('%Y') }}", "t");
  EXPECT_TRUE(chat->tells_date());
  constexpr std::time_t kIn2001 = 1000000000;
  EXPECT_EQ(chat->render(Json::object(), kIn2001).text, "2001");
}

TEST_F(ChatTemplateTest, TextsThatAreNoTemplatesAreNamed) {
  EXPECT_THAT(fault_of("{% if x %}"), HasSubstr("[chat.template] 'odd.jinja' is no template"));
  EXPECT_THAT(fault_of("{% include 'x' %}"), HasSubstr("'include' is not known"));
  EXPECT_THAT(fault_of("{{ 1 + }}"), HasSubstr("--chat-template"));
}

}  // namespace
}  // namespace ferry::chat
