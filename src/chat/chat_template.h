#pragma once
// A chat template: the Jinja text by which a model's turns become one text, in the environment that
// transformers 5 gives it (utils/chat_template_utils.py). jinja/ holds the one build of it,
// no_jinja.cpp stands for it where there is no engine. Conversations come in as JSON
// (conversation.h), text and the places of its marked parts go out.
//
//   const auto chat = ChatTemplate::parse(source, "DIR/chat_template.jinja");
//   const Rendering whole = chat->render(variables, {});  // {"messages": [...], ...}

#include <cstdint>
#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/pieces.h"

namespace ferry::chat {

/** The template itself refuses a chat, or needs a thing that the engine lacks. */
class TemplateRaised : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Rendering {
  std::string text;                   ///< UTF-8
  std::vector<text::Span> generated;  ///< bytes between {% generation %} and {% endgeneration %}
};

class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;

  /** `name` is for messages. Throws Error(data) "chat.template" where the text is no template, or
   * where this build has no engine. */
  static std::shared_ptr<const ChatTemplate> parse(std::string source, std::string name);
  /** False where this build has no engine. */
  static bool is_built();

  /** Renders with these variables, an object. `now` is the moment that strftime_now tells. Throws
   * TemplateRaised. Several threads may call it at once. */
  virtual Rendering render(const nlohmann::ordered_json& variables, std::time_t now) const = 0;

  const std::string& source() const { return source_; }
  const std::string& name() const { return name_; }
  /** It marks the parts that a model generates. */
  bool marks_answers() const { return marks_answers_; }
  /** Its text depends on the day. */
  bool tells_date() const { return source_.find("strftime_now") != std::string::npos; }

 protected:
  ChatTemplate(std::string source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}

  std::string source_, name_;
  bool marks_answers_ = false;
};

}  // namespace ferry::chat
