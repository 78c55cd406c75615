#pragma once
// A prompt with a better and a worse answer, as people have them: TRL's prompt, chosen and
// rejected, with the prompt in its column, inside both answers, or both; OpenAI's input with
// preferred_output; Alpaca's instruction; ShareGPT's conversations with two answers.

#include <string>
#include <variant>

#include "src/chat/conversation.h"

namespace ferry::chat {

/** A row with an answer that is good or bad. */
struct RatedAnswer {
  Conversation chat;           ///< whole, where it is one; only what follows the prompt is learnt
  std::string prompt, answer;  ///< of texts as they stand
  bool is_chat = false, is_good = false;
};

/** The names that a user gives columns; empty where a row's own are looked for. */
struct PreferenceColumns {
  std::string prompt, chosen;
};

/** Texts as they stand. */
struct TextPair {
  std::string prompt, chosen, rejected;
};
/** Whole chats, in which only what comes after the turns of both is learnt. */
struct ChatPair {
  Conversation chosen, rejected;
};

/** Prompt, completion and label, in turns or as texts. Throws Error(data) "data.preferences" with
 * the place where the row is none. */
RatedAnswer read_rating(const Json& row,
                        const PreferenceColumns& columns,
                        const std::string& label_column,
                        bool are_chats,
                        const std::string& place);

/** A row of texts is one of chats where `are_chats`. Throws Error(data) "data.preferences" with the
 * place where the row is none, or its answers are no chats that read_row() takes. */
std::variant<TextPair, ChatPair> read_preference(const Json& row,
                                                 const PreferenceColumns& columns,
                                                 bool are_chats,
                                                 const std::string& place);

}  // namespace ferry::chat
