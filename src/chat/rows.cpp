#include "src/chat/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"

namespace ferry::chat {
namespace {

struct RoleName {
  std::string_view name, role;
};
constexpr RoleName kRoles[] = {
    {"user", kUser},        {"human", kUser},          {"assistant", kAssistant},
    {"gpt", kAssistant},    {"chatgpt", kAssistant},   {"bing", kAssistant},
    {"bard", kAssistant},   {"model", kAssistant},     {"function_call", kAssistant},
    {"system", kSystem},    {"developer", kDeveloper}, {"tool", kTool},
    {"observation", kTool}, {"function", kTool},       {"tool_response", kTool},
};

/** Reads one row; its members know the place for messages. */
class RowReader {
 public:
  RowReader(const Json& row, const RowColumns& columns, const std::string& place, RowUse use)
      : row_(row), columns_(columns), place_(place), use_(use) {}

  Conversation read() {
    conversation_.tools = tools();
    add_system();
    add_history();
    if (!columns_.turns.empty())
      add_turns(row_.at(columns_.turns), columns_.turns, /*are_trained=*/true);
    else
      add_prompt();
    check();
    return std::move(conversation_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what, std::string_view hint) const {
    throw Error(Fault::data, "data.chat", fmt::format("{}: {}", place_, what), hint);
  }

  const Json* find(const Json& object, std::string_view key) const {
    const auto found = object.find(std::string(key));
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  /** JSON, or the text of some. */
  Json unquoted(const Json& value, std::string_view name) const {
    if (!value.is_string()) return value;
    const std::string& text = value.get_ref<const std::string&>();
    if (text.find_first_not_of(" \t\r\n") == text.npos) return nullptr;
    Json inner;
    if (const auto fault = parse_json(text, inner))
      refuse(fmt::format("'{}' is a text that is no JSON: {}", name, fault->what),
             "write a list of tools, or the text of one");
    return inner;
  }

  Json tools() const {
    const Json* given = find(row_, "tools");
    if (!given) return nullptr;
    Json list = unquoted(*given, "tools");
    if (list.is_null()) return nullptr;
    if (!list.is_array()) refuse("'tools' is no list", "write a list of functions");
    if (list.empty()) return nullptr;
    for (Json& tool : list) {
      if (tool.is_string()) tool = unquoted(tool, "tools");
      if (tool.is_object() && !tool.contains("function") && tool.contains("name"))
        tool = Json{{"type", "function"}, {"function", std::move(tool)}};
      const Json* function = tool.is_object() ? find(tool, "function") : nullptr;
      if (!function || !function->is_object() || !find(*function, "name"))
        refuse("a tool has no name",
               R"(expected {"type": "function", "function": {"name": ..., "parameters": ...}})");
    }
    return list;
  }

  void add_system() {
    for (const char* key : {"system", "system_prompt"})
      if (const Json* text = find(row_, key); text && text->is_string()) {
        const std::string& content = text->get_ref<const std::string&>();
        if (content.empty()) continue;
        conversation_.turns.push_back({.role = std::string(kSystem), .text = content});
        return;
      }
  }

  /** Alpaca's earlier turns, pairs of texts. */
  void add_history() {
    const Json* history = find(row_, "history");
    if (!history || !columns_.turns.empty()) return;
    if (!history->is_array()) refuse("'history' is no list", "write [[question, answer], ...]");
    for (const Json& pair : *history) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
        refuse("'history' has an element that is no pair of texts",
               "write [[question, answer], ...]");
      conversation_.turns.push_back({.role = std::string(kUser), .text = pair[0]});
      conversation_.turns.push_back({.role = std::string(kAssistant), .text = pair[1]});
    }
  }

  void add_prompt() {
    const Json& prompt = row_.at(columns_.prompt);
    if (has_turns(prompt)) {
      add_turns(prompt, columns_.prompt, /*are_trained=*/false);
    } else {
      std::string text = text_in(prompt, columns_.prompt);
      if (const Json* below = columns_.below.empty() ? nullptr : find(row_, columns_.below))
        if (const std::string more = text_in(*below, columns_.below); !more.empty())
          text += (text.empty() ? "" : "\n") + more;
      conversation_.turns.push_back({.role = std::string(kUser), .text = text});
    }
    const auto found = row_.find(columns_.answer);
    if (found == row_.end() || found->is_null())
      refuse(fmt::format("the field '{}' is missing", columns_.answer),
             "each row needs its answer");
    if (has_turns(*found))
      add_turns(*found, columns_.answer, /*are_trained=*/true);
    else
      conversation_.turns.push_back(
          {.role = std::string(kAssistant), .text = text_in(*found, columns_.answer)});
  }

  std::string text_in(const Json& value, std::string_view name) const {
    if (!value.is_string())
      refuse(fmt::format("the field '{}' is not a text", name), "expected a text");
    return value.get<std::string>();
  }

  void add_turns(const Json& list, std::string_view name, bool are_trained) {
    if (!list.is_array() || list.empty())
      refuse(fmt::format("'{}' is no list of turns", name),
             R"(expected [{"role": "user", "content": ...}, ...])");
    for (const Json& item : list) {
      Turn turn = turn_of(item, conversation_.turns.size());
      turn.is_trained = turn.is_trained && are_trained;
      // The system prompt of a column stands first already.
      if (turn.role == kSystem && conversation_.turns.size() == 1 &&
          conversation_.turns.front().role == kSystem)
        refuse("the row has a system prompt twice, in a column and in its turns", "keep one");
      conversation_.turns.push_back(std::move(turn));
    }
  }

  Turn turn_of(const Json& item, size_t n) const {
    const std::string where = fmt::format("turn {}", n + 1);
    if (!item.is_object()) refuse(where + " is no object", "expected {\"role\", \"content\"}");
    const Json* said = find(item, "role");
    if (!said) said = find(item, "from");
    if (!said || !said->is_string())
      refuse(where + " does not say who speaks", "expected \"role\" (or \"from\")");
    const std::string& name = said->get_ref<const std::string&>();
    const auto known = std::ranges::find(kRoles, name, &RoleName::name);
    if (known == std::end(kRoles))
      refuse(fmt::format("{} is of the role '{}', which is not known", where, name),
             "known are user, assistant, system, developer and tool; of ShareGPT human, gpt, "
             "function_call and observation");
    Turn turn = {.role = std::string(known->role)};
    read_content(item, where, turn);
    read_thinking(item, where, turn);
    if (name == "function_call")
      take_call_of_text(where, turn);
    else
      read_calls(item, where, turn);
    if (turn.role == kTool) {
      turn.name = text_or_none(item, "name");
      turn.call_id = text_or_none(item, "tool_call_id");
    }
    turn.is_trained = is_trained(item, where);
    if (!turn.text && turn.calls.empty())
      refuse(fmt::format("{} ({}) has no content", where, turn.role),
             "an answer needs a text or a call of a tool; leave empty turns out");
    return turn;
  }

  std::string text_or_none(const Json& item, std::string_view key) const {
    const Json* value = find(item, key);
    return value && value->is_string() ? value->get<std::string>() : std::string();
  }

  void read_content(const Json& item, const std::string& where, Turn& turn) const {
    const Json* content = find(item, "content");
    if (!content) content = find(item, "value");
    if (!content) return;
    if (content->is_string()) {
      turn.text = content->get<std::string>();
      return;
    }
    if (turn.role == kTool &&
        (content->is_object() || content->is_number() ||
         (content->is_array() && (content->empty() || !is_part(content->front()))))) {
      turn.text = content->dump();
      return;
    }
    if (!content->is_array())
      refuse(where + " has a content that is no text", "expected a text, or a list of text parts");
    std::string text;
    for (const Json& part : *content) {
      const std::string type = part.is_object() ? text_or_none(part, "type") : "";
      if (part.is_string()) {
        text += part.get<std::string>();
      } else if (type == "text" && find(part, "text") && part["text"].is_string()) {
        text += part["text"].get<std::string>();
      } else if (type == "thinking" && find(part, "thinking") && part["thinking"].is_string()) {
        turn.thinking += part["thinking"].get<std::string>();
      } else {
        refuse(fmt::format("{} has a part of the type '{}'", where, type.empty() ? "?" : type),
               "texts alone are trained on: leave rows with pictures, sounds and files out");
      }
    }
    turn.text = std::move(text);
  }

  static bool is_part(const Json& value) { return value.is_object() && value.contains("type"); }

  void read_thinking(const Json& item, const std::string& where, Turn& turn) const {
    for (const char* key : {"reasoning_content", "reasoning", "thinking"}) {
      const Json* value = find(item, key);
      if (!value) continue;
      if (!value->is_string())
        refuse(fmt::format("{} has '{}' that is no text", where, key), "expected a text");
      const std::string& text = value->get_ref<const std::string&>();
      if (text.empty()) continue;
      if (!turn.is_answer())
        refuse(fmt::format("{} ({}) has '{}', which answers alone have", where, turn.role, key),
               "move it to the answer");
      if (turn.thinking.empty()) turn.thinking = text;
    }
  }

  ToolCall call_of(const Json& call, const std::string& where) const {
    const Json* function = call.is_object() ? find(call, "function") : nullptr;
    const Json& of = function && function->is_object() ? *function : call;
    ToolCall out;
    out.name = of.is_object() ? text_or_none(of, "name") : "";
    if (out.name.empty())
      refuse(fmt::format("{} calls a tool without a name", where),
             R"(expected {"function": {"name": ..., "arguments": ...}})");
    out.id = text_or_none(call, "id");
    const Json* arguments = find(of, "arguments");
    if (!arguments) arguments = find(of, "parameters");
    out.arguments = Json::object();
    if (!arguments) return out;
    out.arguments = *arguments;
    if (arguments->is_string()) {
      Json inner;
      if (!parse_json(arguments->get_ref<const std::string&>(), inner) && inner.is_object())
        out.arguments = std::move(inner);
    } else if (!arguments->is_object()) {
      refuse(fmt::format("{} calls '{}' with arguments that are no object", where, out.name),
             "expected an object, or the text of one");
    }
    return out;
  }

  void read_calls(const Json& item, const std::string& where, Turn& turn) const {
    const Json* calls = find(item, "tool_calls");
    if (const Json* one = find(item, "function_call"); one && !calls) {
      turn.calls.push_back(call_of(*one, where));
    } else if (calls) {
      if (!calls->is_array())
        refuse(where + " has 'tool_calls' that are no list", "expected a list of calls");
      for (const Json& call : *calls)
        turn.calls.push_back(call_of(call, where));
    }
    if (!turn.calls.empty() && !turn.is_answer())
      refuse(fmt::format("{} ({}) calls a tool, which answers alone do", where, turn.role),
             "is the role right?");
  }

  /** ShareGPT writes the call, or a list of them, as the text of a turn. */
  void take_call_of_text(const std::string& where, Turn& turn) const {
    Json call;
    if (!turn.text || parse_json(*turn.text, call))
      refuse(where + " is a function_call whose text is no JSON",
             R"(expected {"name": ..., "arguments": ...})");
    for (const Json& one : call.is_array() ? call : Json::array({call}))
      turn.calls.push_back(call_of(one, where));
    turn.text.reset();
  }

  /** OpenAI's weight of an answer, axolotl's train. */
  bool is_trained(const Json& item, const std::string& where) const {
    if (const Json* weight = find(item, "weight")) {
      if (!weight->is_number() || (*weight != 0 && *weight != 1))
        refuse(where + " has a weight that is neither 0 nor 1",
               "0 leaves an answer out of the loss, 1 trains on it");
      return *weight == 1;
    }
    const Json* train = find(item, "train");
    return !train || !train->is_boolean() || train->get<bool>();
  }

  void check() const {
    const std::vector<Turn>& turns = conversation_.turns;
    bool may_answer_call = false;
    for (size_t i = 0; i < turns.size(); ++i) {
      const std::string where = fmt::format("turn {}", i + 1);
      const bool is_of_system = turns[i].role == kSystem || turns[i].role == kDeveloper;
      if (is_of_system && i > 0 && turns[i - 1].role != kSystem && turns[i - 1].role != kDeveloper)
        refuse(fmt::format("{} is a {} prompt behind other turns", where, turns[i].role),
               "it belongs at the beginning");
      if (turns[i].role == kTool && !may_answer_call)
        refuse(where + " is a tool's result that no call asked for",
               "put it behind the answer that calls the tool");
      if (turns[i].role != kTool) may_answer_call = !turns[i].calls.empty();
    }
    if (use_ == RowUse::is_answered) {
      if (turns.back().is_answer())
        refuse("the last turn is an answer, and none is to be given", "end with a user's turn");
      return;
    }
    if (std::ranges::none_of(turns,
                             [](const Turn& turn) { return turn.is_answer() && turn.is_trained; }))
      refuse("there is no answer to learn",
             "a row needs a turn of the assistant (gpt) that is trained on");
  }

  const Json& row_;
  const RowColumns& columns_;
  const std::string& place_;
  const RowUse use_;
  Conversation conversation_;
};

bool holds_text(const Json& row, std::string_view key) {
  const auto found = row.find(std::string(key));
  return found != row.end() && found->is_string();
}

}  // namespace

bool has_turns(const Json& value) {
  return value.is_array() && !value.empty() && value.front().is_object() &&
         (value.front().contains("role") || value.front().contains("from"));
}

Conversation read_row(const Json& row,
                      const RowColumns& columns,
                      const std::string& place,
                      RowUse use) {
  return RowReader(row, columns, place, use).read();
}

bool is_read_column(std::string_view name) {
  constexpr std::string_view kNames[] = {"system", "system_prompt", "tools", "history"};
  return std::ranges::count(kNames, name) > 0;
}

std::optional<RowColumns> find_columns(const Json& row,
                                       std::string_view asked,
                                       bool takes_prompts) {
  if (!row.is_object()) return std::nullopt;
  const auto holds = [&](std::string_view key) {
    const auto found = row.find(std::string(key));
    return found != row.end() && has_turns(*found);
  };
  if (!asked.empty()) {
    if (holds(asked)) return RowColumns{.turns = std::string(asked)};
    return std::nullopt;
  }
  for (const std::string_view key : {"messages", "conversations", "conversation"})
    if (holds(key)) return RowColumns{.turns = std::string(key)};
  struct Prompts {
    std::string_view prompt, answer, below;
  };
  constexpr Prompts kPrompts[] = {
      {"prompt", "completion", ""},       {"prompt", "response", ""},
      {"instruction", "output", "input"}, {"instruction", "response", "context"},
      {"question", "answer", "context"},  {"query", "response", ""}};
  for (const auto& [prompt, answer, below] : kPrompts) {
    const bool are_turns = holds(prompt) && row.contains(std::string(answer));
    const bool are_texts = takes_prompts && holds_text(row, prompt) && holds_text(row, answer);
    if (are_turns || are_texts)
      return RowColumns{.prompt = std::string(prompt),
                        .answer = std::string(answer),
                        .below = std::string(below)};
  }
  // Any other name, where one column alone has turns and nothing says that it is half of a pair.
  std::string only;
  for (const auto& [key, value] : row.items()) {
    if (!has_turns(value) || key == "prompt" || key == "chosen" || key == "rejected") continue;
    if (!only.empty()) return std::nullopt;
    only = key;
  }
  if (only.empty()) return std::nullopt;
  return RowColumns{.turns = only};
}

}  // namespace ferry::chat
