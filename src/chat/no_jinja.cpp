// ChatTemplate in a build without the engine.

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/chat/chat_template.h"

namespace ferry::chat {

bool ChatTemplate::is_built() {
  return false;
}

std::shared_ptr<const ChatTemplate> ChatTemplate::parse(std::string /*source*/, std::string name) {
  throw Error(
      Fault::data, "chat.template",
      fmt::format("'{}' cannot be filled in: this build has no engine for chat templates", name),
      "install it and build again: scripts/setup && scripts/build");
}

}  // namespace ferry::chat
