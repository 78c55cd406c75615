#include "src/inputs/empty_answer.h"

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/chat/template_source.h"

namespace ferry {
namespace {

bool has_chat_template(const HfDirectory& model) {
  try {
    return chat::template_of_model(model.tokenizer()).has_value();
  } catch (const Error&) {  // a damaged file: the user asked for no chat
    return false;
  }
}

}  // namespace

std::string explain_empty_answer(const HfDirectory& model,
                                 const Tokenizer& tokenizer,
                                 std::span<const int32_t> ids,
                                 bool has_text) {
  if (has_text || ids.empty() || ids[0] < 0 || ids[0] >= tokenizer.vocab_size()) return {};
  const std::string line =
      fmt::format("nothing was added: the model ended the text at once, with the token {}",
                  tokenizer.id_to_token(ids[0]));
  if (!has_chat_template(model)) return line + "; give it a text that is not at its end";
  return line + fmt::format(
                    "; it is a chat model, to which a prompt without its template is a text that "
                    "is over: `ferry chat {}` asks by its template",
                    model.path().string());
}

}  // namespace ferry
