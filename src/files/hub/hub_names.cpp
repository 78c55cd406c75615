#include "src/files/hub/hub_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace ferry::hub {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(std::string_view part) {
  constexpr size_t kLongest = 96;
  if (part.empty() || part.size() > kLongest) return false;
  if (part.find("--") != part.npos || part.find("..") != part.npos) return false;
  const auto is_edge = [](char c) { return c == '-' || c == '.'; };
  if (is_edge(part.front()) || is_edge(part.back())) return false;
  return std::ranges::all_of(
      part, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

std::string RepoName::text() const {
  return revision == "main" ? id : fmt::format("{}@{}", id, revision);
}

bool is_repo_id(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos) return is_name(text);
  return is_name(text.substr(0, slash)) && is_name(text.substr(slash + 1));
}

std::optional<RepoName> parse_repo_name(RepoKind kind, std::string_view text) {
  RepoName name = {.kind = kind};
  if (const size_t at = text.find('@'); at != text.npos) {
    name.revision = text.substr(at + 1);
    text = text.substr(0, at);
    if (!is_safe_path(name.revision)) return std::nullopt;
  }
  if (!is_repo_id(text)) return std::nullopt;
  name.id = text;
  return name;
}

bool is_commit(std::string_view revision) {
  constexpr size_t kDigits = 40;
  return revision.size() == kDigits && std::ranges::all_of(revision, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_safe_path(std::string_view path) {
  constexpr size_t kLongest = 1024;
  if (path.empty() || path.size() > kLongest) return false;
  const auto is_bad = [](char c) {
    return c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  };
  if (std::ranges::any_of(path, is_bad)) return false;
  if (path.size() > 1 && path[1] == ':') return false;  // a drive's name
  for (std::string_view rest = path;;) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == rest.npos) return true;
    rest.remove_prefix(slash + 1);
  }
}

std::string encoded(std::string_view text, bool keeps_slashes) {
  std::string result;
  for (const char c : text) {
    const bool is_plain =
        is_letter_or_digit(c) || std::string_view("-_.~").find(c) != std::string_view::npos;
    if (is_plain || (keeps_slashes && c == '/'))
      result += c;
    else
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

}  // namespace ferry::hub
