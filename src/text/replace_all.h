#pragma once
// Replaces a text within another one. Called by normalizers and decoders.

#include <string>
#include <string_view>

namespace ferry::text {

/** Every occurrence of `from` (not empty), from left to right. */
inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace ferry::text
