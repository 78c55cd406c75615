#pragma once
// Conversations for tests.

#include <string>
#include <vector>

#include "src/chat/conversation.h"

namespace ferry::chat {

/** Turns of user and assistant by turns. */
inline Conversation chat_of(const std::vector<std::string>& texts) {
  Conversation chat;
  for (size_t i = 0; i < texts.size(); ++i)
    chat.turns.push_back({.role = std::string(i % 2 == 0 ? kUser : kAssistant),
                          .text = texts[i],
                          .thinking = {},
                          .calls = {},
                          .name = {},
                          .call_id = {}});
  return chat;
}

}  // namespace ferry::chat
