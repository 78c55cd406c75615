#include "src/chat/conversation.h"

#include <algorithm>

namespace ferry::chat {

Json Conversation::messages(Arguments arguments, size_t n) const {
  Json list = Json::array();
  for (size_t i = 0; i < n; ++i) {
    const Turn& turn = turns[i];
    Json message = {{"role", turn.role}};
    if (turn.text) message["content"] = *turn.text;
    // Families read it under different names.
    if (!turn.thinking.empty())
      for (const char* key : {"reasoning_content", "reasoning", "thinking"})
        message[key] = turn.thinking;
    for (const ToolCall& call : turn.calls) {
      Json function = {{"name", call.name}, {"arguments", call.arguments}};
      if (arguments == Arguments::as_texts && !call.arguments.is_string())
        function["arguments"] = call.arguments.dump();
      Json item = Json::object();
      if (!call.id.empty()) item["id"] = call.id;
      item["type"] = "function";
      item["function"] = std::move(function);
      message["tool_calls"].push_back(std::move(item));
    }
    if (!turn.name.empty()) message["name"] = turn.name;
    if (!turn.call_id.empty()) message["tool_call_id"] = turn.call_id;
    list.push_back(std::move(message));
  }
  return list;
}

size_t Conversation::n_answers() const {
  return static_cast<size_t>(std::ranges::count_if(turns, &Turn::is_answer));
}

std::string packed(const Conversation& conversation) {
  Json list = Json::array();
  for (const Turn& turn : conversation.turns) {
    Json item = {{"role", turn.role}};
    if (turn.text) item["text"] = *turn.text;
    if (!turn.thinking.empty()) item["thinking"] = turn.thinking;
    for (const ToolCall& call : turn.calls)
      item["calls"].push_back(
          {{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
    if (!turn.name.empty()) item["name"] = turn.name;
    if (!turn.call_id.empty()) item["call_id"] = turn.call_id;
    if (!turn.is_trained) item["is_trained"] = false;
    list.push_back(std::move(item));
  }
  Json all = {{"turns", std::move(list)}};
  if (!conversation.tools.is_null()) all["tools"] = conversation.tools;
  return all.dump();
}

Conversation unpacked(std::string_view text) {
  const Json all = Json::parse(text);
  Conversation conversation;
  if (all.contains("tools")) conversation.tools = all["tools"];
  for (const Json& item : all["turns"]) {
    Turn turn = {.role = item["role"]};
    if (item.contains("text")) turn.text = item["text"];
    turn.thinking = item.value("thinking", "");
    if (item.contains("calls"))
      for (const Json& call : item["calls"])
        turn.calls.push_back(
            {.id = call["id"], .name = call["name"], .arguments = call["arguments"]});
    turn.name = item.value("name", "");
    turn.call_id = item.value("call_id", "");
    turn.is_trained = item.value("is_trained", true);
    conversation.turns.push_back(std::move(turn));
  }
  return conversation;
}

}  // namespace ferry::chat
