#pragma once
// Why a language model added nothing to a prompt, for who asked it by `ferry generate`.

#include <cstdint>
#include <span>
#include <string>

#include "src/files/hf/hf_directory.h"
#include "src/text/tokenizer.h"

namespace ferry {

/** A line for the user where the model ended the text at once, with these ids; empty for other
 * answers. For a model with a chat template it names the verb that asks by it. */
std::string explain_empty_answer(const HfDirectory& model,
                                 const Tokenizer& tokenizer,
                                 std::span<const int32_t> ids,
                                 bool has_text);

}  // namespace ferry
