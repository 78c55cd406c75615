#pragma once
// A conversation as the text that a model is trained on, and the places in it that are learnt: the
// answers with the tokens that end them. Places come from the template's {% generation %} marks, or
// where it has none from texts that are cut before and behind an answer. Knows control tokens as
// texts only; encoder.h makes tokens.

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/chat/chat_template.h"
#include "src/chat/conversation.h"
#include "src/text/pieces.h"

namespace ferry::chat {

/** The turns whose tokens have a loss. */
enum class TrainOn : uint8_t {
  each,  ///< every answer
  last,  ///< the last answer
  all,   ///< the whole text
};

/** Facts that a template is filled in with. */
struct TemplateUse {
  std::shared_ptr<const ChatTemplate> chat, with_tools;  ///< the second may be null: as chat
  Json variables = Json::object();  ///< special tokens by name, then what the user gives
  std::time_t now = 0;              ///< the moment that strftime_now tells
  /** Texts of control tokens: what a person wrote is none, even where it looks so. */
  std::vector<std::string> control_texts;
  /** Those of them that end an answer. */
  std::vector<std::string> end_texts;
};

struct RenderedChat {
  std::string text;
  std::vector<text::Span> answers;  ///< bytes that are learnt, ascending
  /** Places inside of people's words, at which the text has to be cut for tokens: it would be taken
   * for control tokens else. */
  std::vector<uint32_t> cuts;
};

class Renderer {
 public:
  explicit Renderer(TemplateUse use);

  /** Throws Error(data) "chat.template" with the place where the template refuses the chat,
   * "chat.mask" where it does not show which part of its text is an answer. */
  RenderedChat render(const Conversation& conversation, TrainOn on, const std::string& place) const;
  /** The text that a model goes on with to answer the last turn; nothing of it is learnt. Throws
   * Error(data) "chat.template" where the template refuses the chat. */
  RenderedChat ask(const Conversation& conversation, const std::string& place) const;
  const TemplateUse& use() const { return use_; }

 private:
  TemplateUse use_;
};

}  // namespace ferry::chat
