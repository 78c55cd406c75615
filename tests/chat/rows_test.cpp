#include "src/chat/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace ferry::chat {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Conversation read(const std::string& row, bool takes_prompts = true) {
  const Json object = Json::parse(row);
  const auto columns = find_columns(object, "", takes_prompts);
  if (!columns) throw std::runtime_error("no columns");
  return read_row(object, *columns, "x.jsonl:7");
}

/** "user:Hi assistant:Hello" */
std::string in_words(const Conversation& conversation) {
  std::string words;
  for (const Turn& turn : conversation.turns) {
    words += (words.empty() ? "" : " ") + turn.role + ":" + turn.text.value_or("-");
    if (!turn.thinking.empty()) words += "(" + turn.thinking + ")";
    for (const ToolCall& call : turn.calls)
      words += "[" + call.name + call.arguments.dump() + "]";
    if (!turn.is_trained) words += "*";
  }
  return words;
}

std::string fault_of(const std::string& row) {
  try {
    read(row);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

TEST(ChatRows, FormsThatPeopleHaveAreOneConversation) {
  EXPECT_EQ(in_words(read(R"({"messages": [{"role": "system", "content": "S"},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": "c", "reasoning_content": "t"}]})")),
            "system:S user:ab assistant:c(t)");
  EXPECT_EQ(in_words(read(R"({"system": "S", "conversations": [{"from": "human", "value": "a"},
      {"from": "gpt", "value": "b"}]})")),
            "system:S user:a assistant:b");
  EXPECT_EQ(in_words(read(R"({"instruction": "a", "input": "x", "output": "b", "system": "S",
      "history": [["q", "r"]]})")),
            "system:S user:q assistant:r user:a\nx assistant:b");
  EXPECT_EQ(in_words(read(R"({"prompt": "a", "completion": "b"})")), "user:a assistant:b");
  EXPECT_EQ(in_words(read(R"({"prompt": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
      "completion": [{"role": "assistant", "content": "d"}]})")),
            "user:a* assistant:b* user:c* assistant:d");
  EXPECT_EQ(in_words(read(R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b", "weight": 0}, {"role": "user", "content": "c"},
      {"role": "assistant", "content": "d", "weight": 1}]})")),
            "user:a assistant:b* user:c assistant:d");
}

TEST(ChatRows, CallsOfToolsComeInSeveralForms) {
  EXPECT_EQ(in_words(read(R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
       "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
      {"role": "tool", "tool_call_id": "1", "content": "9"},
      {"role": "assistant", "content": "b"}]})")),
            "user:a assistant:-[f{\"x\":1}] tool:9 assistant:b");
  EXPECT_EQ(in_words(read(R"({"conversations": [{"from": "human", "value": "a"},
      {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"},
      {"from": "observation", "value": "9"}, {"from": "gpt", "value": "b"}],
      "tools": "[{\"name\": \"f\", \"parameters\": {}}]"})")),
            "user:a assistant:-[f{\"x\":1}] tool:9 assistant:b");
  EXPECT_EQ(read(R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}], "tools": "[{\"name\": \"f\"}]"})")
                .tools.dump(),
            R"([{"type":"function","function":{"name":"f"}}])");
}

TEST(ChatRows, RowsThatCannotBeLearntAreNamedWithTheWay) {
  const auto turns = [](const std::string& list) { return "{\"messages\": [" + list + "]}"; };
  const std::string user = R"({"role": "user", "content": "a"})",
                    answer = R"(, {"role": "assistant", "content": "b"})";
  EXPECT_THAT(fault_of(turns(user)),
              AllOf(HasSubstr("[data.chat] x.jsonl:7: there is no answer to learn"),
                    HasSubstr("a turn of the assistant")));
  EXPECT_THAT(fault_of(turns(R"({"role": "critic", "content": "a"})" + answer)),
              AllOf(HasSubstr("turn 1 is of the role 'critic'"), HasSubstr("known are user")));
  EXPECT_THAT(fault_of(turns(user + R"(, {"role": "assistant", "content": null})")),
              HasSubstr("turn 2 (assistant) has no content"));
  EXPECT_THAT(
      fault_of(turns(R"({"role": "user", "content": [{"type": "image_url", "image_url": {}}]})" +
                     answer)),
      AllOf(HasSubstr("turn 1 has a part of the type 'image_url'"), HasSubstr("pictures")));
  EXPECT_THAT(
      fault_of(turns(user + R"(, {"role": "assistant", "tool_calls": [{"function": {}}]})")),
      HasSubstr("turn 2 calls a tool without a name"));
  EXPECT_THAT(fault_of(turns(user + R"(, {"role": "tool", "content": "9"})" + answer)),
              HasSubstr("turn 2 is a tool's result that no call asked for"));
  EXPECT_THAT(fault_of(turns(user + R"(, {"role": "system", "content": "S"})" + answer)),
              HasSubstr("turn 2 is a system prompt behind other turns"));
  EXPECT_THAT(fault_of(turns(user + R"(, {"content": "b"})")),
              HasSubstr("turn 2 does not say who speaks"));
  EXPECT_THAT(fault_of(R"({"system": "S", "messages": [{"role": "system", "content": "T"}]})"),
              HasSubstr("a system prompt twice"));
  EXPECT_THAT(fault_of(turns(user + R"(, {"role": "assistant", "content": "b", "weight": 0.5})")),
              HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(fault_of(R"({"messages": [{"role": "user", "content": "a"}], "tools": "nonsense"})"),
              HasSubstr("'tools' is a text that is no JSON"));
}

TEST(ChatRows, ColumnsAreFoundByWhatTheyHold) {
  const auto found = [](const std::string& row, std::string_view asked, bool takes_prompts) {
    const auto columns = find_columns(Json::parse(row), asked, takes_prompts);
    return columns ? columns->turns + "|" + columns->prompt : "none";
  };
  const std::string list = R"([{"role": "user", "content": "a"}])";
  EXPECT_EQ(found("{\"id\": 1, \"dialogue\": " + list + "}", "", false), "dialogue|");
  EXPECT_EQ(found("{\"a\": " + list + ", \"b\": " + list + "}", "", false), "none");
  EXPECT_EQ(found("{\"a\": " + list + ", \"b\": " + list + "}", "b", false), "b|");
  EXPECT_EQ(found("{\"chosen\": " + list + "}", "", true), "none");
  const std::string prompts = R"({"prompt": "a", "completion": "b"})";
  EXPECT_EQ(found(prompts, "", false), "none");
  EXPECT_EQ(found(prompts, "", true), "|prompt");
  EXPECT_EQ(found(R"({"text": "a"})", "", true), "none");
}

TEST(ChatRows, ATravellingConversationIsTheSame) {
  const Conversation whole = read(R"({"messages": [{"role": "user", "content": "ä"},
      {"role": "assistant", "reasoning_content": "t", "tool_calls": [{"id": "1",
       "function": {"name": "f", "arguments": "no object"}}], "weight": 1},
      {"role": "tool", "name": "f", "tool_call_id": "1", "content": "9"},
      {"role": "assistant", "content": "b", "weight": 0}],
      "tools": [{"type": "function", "function": {"name": "f"}}]})");
  const Conversation back = unpacked(packed(whole));
  EXPECT_EQ(in_words(back), in_words(whole));
  EXPECT_EQ(packed(back), packed(whole));
  EXPECT_EQ(back.messages(Arguments::as_objects, 4), whole.messages(Arguments::as_objects, 4));
}

}  // namespace
}  // namespace ferry::chat
