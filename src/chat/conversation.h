#pragma once
// A conversation: who says what, with calls of tools and with thinking. rows.h reads it from what
// people have, templates (chat_template.h) take it as JSON of OpenAI's form, and between both it
// travels as that JSON's text in an Example.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::chat {

using Json = nlohmann::ordered_json;

/** A tool that an assistant asks for. */
struct ToolCall {
  std::string id;    ///< may be empty
  std::string name;  ///< not empty
  Json arguments;    ///< an object; a text where the data's text is no JSON object
};

inline constexpr std::string_view kUser = "user", kAssistant = "assistant", kSystem = "system",
                                  kDeveloper = "developer", kTool = "tool";

struct Turn {
  std::string role;  ///< one of the five above
  std::optional<std::string> text;
  std::string thinking;         ///< before the text; empty for none
  std::vector<ToolCall> calls;  ///< of an assistant
  std::string name, call_id;    ///< of a tool's result: the tool, and the call that it answers
  bool is_trained = true;       ///< false: the data says that this answer is not to be learnt

  bool is_answer() const { return role == kAssistant; }
};

/** How templates get the arguments of a call: they differ in what they take. */
enum class Arguments { as_objects, as_texts };

struct Conversation {
  std::vector<Turn> turns;
  Json tools;  ///< a list of {"type": "function", "function": {...}}; null for none

  /** "messages" as templates take them: of the first n turns. */
  Json messages(Arguments arguments, size_t n) const;
  size_t n_answers() const;
};

/** The text that travels in an Example, and back. */
std::string packed(const Conversation& conversation);
Conversation unpacked(std::string_view text);

}  // namespace ferry::chat
