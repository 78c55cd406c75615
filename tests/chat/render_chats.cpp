// Renders chats for compare_templates.py: a line of JSON each, {"template": its text, "variables":
// {...}}. Prints {"text": ..., "generated": [[begin, end], ...]} in bytes, or {"raised": why}. With
// "row" in the place of "variables" it is a row of data, {"messages": ...}, and "generated" are the
// answers that are learnt; "controls" are the control tokens, "ends" those that end an answer.

#include <ctime>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "src/base/error.h"
#include "src/chat/chat_template.h"
#include "src/chat/renderer.h"
#include "src/chat/rows.h"

namespace {

using ferry::chat::ChatTemplate;
using ferry::chat::Json;

Json answer_of(const std::string& text, const std::vector<ferry::text::Span>& spans) {
  Json answer = {{"text", text}, {"generated", Json::array()}};
  for (const auto& [begin, end] : spans)
    answer["generated"].push_back({begin, end});
  return answer;
}

Json answers_learnt(const Json& given, std::shared_ptr<const ChatTemplate> of) {
  ferry::chat::TemplateUse use = {.chat = std::move(of),
                                  .with_tools = nullptr,
                                  .variables = given["tokens"],
                                  .now = std::time(nullptr),
                                  .control_texts = given["controls"],
                                  .end_texts = given["ends"]};
  const auto conversation = ferry::chat::read_row(
      given["row"], {.turns = "messages", .prompt = {}, .answer = {}, .below = {}}, "row");
  const auto chat =
      ferry::chat::Renderer(std::move(use)).render(conversation, ferry::chat::TrainOn::each, "row");
  return answer_of(chat.text, chat.answers);
}

}  // namespace

int main() {
  if (!ChatTemplate::is_built()) return 77;
  std::map<std::string, std::shared_ptr<const ChatTemplate>> templates;
  for (std::string line; std::getline(std::cin, line);) {
    const auto given = nlohmann::ordered_json::parse(line);
    nlohmann::ordered_json answer;
    try {
      auto& of = templates[given["template"]];
      if (!of) of = ChatTemplate::parse(given["template"], "given");
      if (given.contains("row")) {
        answer = answers_learnt(given, of);
      } else {
        const auto rendering = of->render(given["variables"], std::time(nullptr));
        answer = answer_of(rendering.text, rendering.generated);
      }
    } catch (const std::exception& e) {
      answer = {{"raised", e.what()}};
    }
    std::cout << answer.dump() << '\n';
  }
  return 0;
}
