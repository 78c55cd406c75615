// Renders chats for compare_templates.py: a line of JSON each, {"template": its text, "variables":
// {...}}. Prints {"text": ..., "generated": [[begin, end], ...]} in bytes, or {"raised": why}.

#include <ctime>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "src/base/error.h"
#include "src/chat/chat_template.h"

int main() {
  using ferry::chat::ChatTemplate;
  if (!ChatTemplate::is_built()) return 77;
  std::map<std::string, std::shared_ptr<const ChatTemplate>> templates;
  for (std::string line; std::getline(std::cin, line);) {
    const auto given = nlohmann::ordered_json::parse(line);
    nlohmann::ordered_json answer;
    try {
      auto& of = templates[given["template"]];
      if (!of) of = ChatTemplate::parse(given["template"], "given");
      const auto rendering = of->render(given["variables"], std::time(nullptr));
      answer["text"] = rendering.text;
      answer["generated"] = nlohmann::ordered_json::array();
      for (const auto& [begin, end] : rendering.generated)
        answer["generated"].push_back({begin, end});
    } catch (const std::exception& e) {
      answer = {{"raised", e.what()}};
    }
    std::cout << answer.dump() << '\n';
  }
  return 0;
}
