#pragma once
// Base64, in which tokenizers' files keep bytes: charsmaps, and the tokens of rank files.

#include <optional>
#include <string>
#include <string_view>

namespace ferry::text {

/** The bytes that a text of base64 stands for; nothing if it is none. */
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace ferry::text
