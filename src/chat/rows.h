#pragma once
// Conversations as people have them, a row each: OpenAI's `messages`, ShareGPT's `conversations`,
// Alpaca's instruction and output, prompt and completion. An object of JSON comes in, a checked
// conversation goes out; a fault names the row.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/chat/conversation.h"

namespace ferry::chat {

/** The columns of a row that a conversation is read from; empty names are not there. */
struct RowColumns {
  std::string turns;   ///< a list of turns
  std::string prompt;  ///< a text, or a list of turns that are not trained
  std::string answer;  ///< the same, trained; with prompt in the place of turns
  std::string below;   ///< a text below the prompt's
};

/** The columns by which an object holds a conversation: a list of turns under any key, or where
 * `takes_prompts` a prompt and an answer under well-known ones. `asked`: the user's name for the
 * column of turns, or empty. */
std::optional<RowColumns> find_columns(const Json& row, std::string_view asked, bool takes_prompts);

/** A list whose elements say who speaks. */
bool has_turns(const Json& value);

/** The columns that hold something for `read_row` beside the ones of RowColumns: "system", "tools",
 * "history". */
bool is_read_column(std::string_view name);

/** A row whose answers are learnt, or a chat whose last turn is to be answered. */
enum class RowUse : uint8_t { is_learnt, is_answered };

/** Throws Error(data) "data.chat" with the place where the row is not a conversation for this use:
 * an unknown role, a turn without content, a picture, a call without a name, turns out of order, no
 * answer to learn, or nothing to answer. */
Conversation read_row(const Json& row,
                      const RowColumns& columns,
                      const std::string& place,
                      RowUse use = RowUse::is_learnt);

}  // namespace ferry::chat
