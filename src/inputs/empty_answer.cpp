#include "src/inputs/empty_answer.h"

#include <fmt/format.h>

#include <string_view>

#include "src/base/error.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

/** A form of templates, known by a text that it holds, and a question written in it. */
struct ChatForm {
  std::string_view mark, question;
};
constexpr ChatForm kForms[] = {
    {"<|im_start|>", R"($'<|im_start|>user\nQUESTION<|im_end|>\n<|im_start|>assistant\n')"},
    {"<|start_header_id|>", R"($'<|start_header_id|>user<|end_header_id|>\n\nQUESTION<|eot_id|>)"
                            R"(<|start_header_id|>assistant<|end_header_id|>\n\n')"},
    {"<start_of_turn>", R"($'<start_of_turn>user\nQUESTION<end_of_turn>\n<start_of_turn>model\n')"},
    {"[INST]", R"('[INST] QUESTION [/INST]')"},
    {"<|assistant|>", R"($'<|user|>\nQUESTION<|end|>\n<|assistant|>\n')"},
};

/** The template as it stands, in the files that may have it; empty: the model is no chat model. */
std::string template_of(const HfDirectory& model) {
  for (const char* name : {"chat_template.jinja", "tokenizer_config.json"}) {
    try {
      std::string text = read_text_file(model.file(name));
      if (std::string_view(name).ends_with(".jinja") || text.find("chat_template") != text.npos)
        return text;
    } catch (const Error&) {  // not there
    }
  }
  return {};
}

}  // namespace

std::string explain_empty_answer(const HfDirectory& model,
                                 const Tokenizer& tokenizer,
                                 std::span<const int32_t> ids,
                                 bool has_text) {
  if (has_text || ids.empty() || ids[0] < 0 || ids[0] >= tokenizer.vocab_size()) return {};
  std::string line =
      fmt::format("nothing was added: the model ended the text at once, with the token {}",
                  tokenizer.id_to_token(ids[0]));
  const std::string chat = template_of(model);
  if (chat.empty()) return line + "; give it a text that is not at its end";
  line += "; it is a chat model, to which a prompt without its template is a text that is over";
  for (const ChatForm& form : kForms)
    if (chat.find(form.mark) != chat.npos)
      return line + fmt::format(". Write the template around the question: {}", form.question);
  return line + ". Write the text of its chat template around the question";
}

}  // namespace ferry
