// ChatTemplate by llama.cpp's Jinja engine (src/chat/meson.build), with nodes that do as Python
// does (python_nodes.h).

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "jinja/runtime.h"
#include "src/base/error.h"
#include "src/chat/chat_template.h"
#include "src/chat/jinja/python_nodes.h"
#include "src/chat/jinja/python_values.h"

namespace ferry::chat {
namespace {

/** They stand in the output where a marked part begins and ends: code points that no text has
 * (Unicode 23.7). */
constexpr std::string_view kBegin = "\uFDD0", kEnd = "\uFDD1";

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/** Blocks that put the marks into the output in the place of {% generation %}: white space around
 * them goes as it would there. */
std::string with_marks(const std::string& source) {
  static const std::regex tag(R"(\{%([-+]?)(\s*)(end)?generation(\s*)([-+]?)%\})");
  // The engine's lexer drops the first character of a text that a block follows on its line.
  std::string out = source.empty() || is_blank(source.front()) ? "" : "{{ '' }}";
  auto rest = source.cbegin();
  for (std::sregex_iterator found(source.begin(), source.end(), tag), end; found != end; ++found) {
    const std::smatch& match = *found;
    out.append(rest, match[0].first);
    out += fmt::format("{{%{} if true %}}{}{{% endif {}%}}", match[1].str(),
                       match[3].matched ? kEnd : kBegin, match[5].str());
    rest = match[0].second;
  }
  return out.append(rest, source.cend());
}

/** Takes the marks out of a text. */
Rendering without_marks(const std::string& text) {
  Rendering out;
  std::vector<uint32_t> open;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const auto place = static_cast<uint32_t>(out.text.size());
    if (rest.starts_with(kBegin)) {
      open.push_back(place);
      at += kBegin.size();
    } else if (rest.starts_with(kEnd)) {
      if (open.empty()) throw TemplateRaised("a generation block ends that did not begin");
      if (open.size() == 1 && open.front() < place) out.generated.push_back({open.front(), place});
      open.pop_back();
      at += kEnd.size();
    } else {
      const size_t next = std::min(text.find("\uFDD0", at), text.find("\uFDD1", at));
      const size_t end = std::min(next, text.size());
      out.text.append(text, at, end - at);
      at = end;
    }
  }
  if (!open.empty()) throw TemplateRaised("a generation block has no end in the text");
  return out;
}

/** The last line of the engine's message, which says what was wrong. */
std::string reason_of(const std::exception& e) {
  std::string text = e.what();
  for (const std::string_view mark : {"Error: ", "Jinja Exception: "})
    if (const size_t at = text.rfind(mark); at != text.npos) text.erase(0, at + mark.size());
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  return text;
}

/** {% with %}, which the engine has not. */
void refuse_unknown(const std::string& source) {
  static const std::regex block(
      R"(\{%[-+]?\s*(with|include|import|from|extends|block|autoescape)\b)");
  if (std::smatch found; std::regex_search(source, found, block))
    throw TemplateRaised(fmt::format("the statement '{}' is not known here", found[1].str()));
}

class JinjaTemplate : public ChatTemplate {
 public:
  JinjaTemplate(std::string source, std::string name)
      : ChatTemplate(std::move(source), std::move(name)) {
    refuse_unknown(source_);
    const std::string marked = with_marks(source_);
    marks_answers_ = marked.find(kBegin) != marked.npos;
    jinja::lexer lexer;
    const jinja::lexer_result tokens = lexer.tokenize(marked);
    program_ = jinja::parse_from_tokens(tokens);
    make_pythonic(program_);
    text_ = std::make_shared<std::string>(tokens.source);
  }

  Rendering render(const nlohmann::ordered_json& variables, std::time_t now) const override {
    jinja::context context;
    context.src = text_;
    context.current_time = now;
    for (const auto& [name, json] : variables.items())
      context.set_val(name, value_of(json));
    try {
      return without_marks(run(program_, context));
    } catch (const TemplateRaised&) {
      throw;
    } catch (const std::exception& e) {
      throw TemplateRaised(reason_of(e));
    }
  }

 private:
  jinja::program program_;
  std::shared_ptr<std::string> text_;  // for messages
};

}  // namespace

bool ChatTemplate::is_built() {
  return true;
}

std::shared_ptr<const ChatTemplate> ChatTemplate::parse(std::string source, std::string name) {
  try {
    return std::make_shared<JinjaTemplate>(std::move(source), name);
  } catch (const std::exception& e) {
    throw Error(Fault::data, "chat.template",
                fmt::format("'{}' is no template that is understood: {}", name, reason_of(e)),
                "it is written in Jinja, as chat_template of transformers; name another one with "
                "--chat-template");
  }
}

}  // namespace ferry::chat
