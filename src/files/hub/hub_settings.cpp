#include "src/files/hub/hub_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>

#include "src/base/error.h"
#include "src/files/plain_file.h"

namespace ferry::hub {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = variable(name); !value.empty()) return value;
  return {};
}

bool is_on(const char* name) {
  std::string value = variable(name);
  std::ranges::transform(value, value.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

/** ~ at the beginning, $NAME and ${NAME} anywhere; a variable that is not set stays as written. */
fs::path expanded(std::string_view text) {
  std::string result;
  if (text == "~" || text.starts_with("~/")) {
    result = variable("HOME");
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    const size_t dollar = std::min(text.find('$'), text.size());
    result += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.empty()) break;
    const bool is_braced = text.starts_with("${");
    size_t end = is_braced ? 2 : 1;
    const size_t begin = end;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    const std::string name(text.substr(begin, end - begin));
    const bool is_closed = !is_braced || (end < text.size() && text[end] == '}');
    const size_t length = is_closed && is_braced ? end + 1 : end;
    const char* value = is_closed && !name.empty() ? std::getenv(name.c_str()) : nullptr;
    result += value ? std::string_view(value) : text.substr(0, length);
    text.remove_prefix(length);
  }
  return result;
}

/** Where Hugging Face's tools keep what is theirs. */
fs::path hf_home() {
  if (const std::string home = variable("HF_HOME"); !home.empty()) return expanded(home);
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return expanded(cache) / "huggingface";
  if (const std::string home = variable("HOME"); !home.empty())
    return fs::path(home) / ".cache/huggingface";
  return {};
}

std::string trimmed(std::string text) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r'; });
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

void read_token(HubSettings& settings) {
  if (is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (settings.token = trimmed(variable(name)); !settings.token.empty()) {
      settings.token_origin = name;
      break;
    }
  if (settings.token.empty()) {
    const std::string named = variable("HF_TOKEN_PATH");
    const fs::path home = hf_home();
    const fs::path file = !named.empty() ? expanded(named) : home.empty() ? home : home / "token";
    constexpr size_t kLongest_bytes = 64 * 1024;
    if (file.empty() || !path_exists(file)) return;
    settings.token = trimmed(read_text_file(file, kLongest_bytes));
    settings.token_origin = file.string();
  }
  const auto is_odd = [](char c) { return c <= ' ' || c > '~'; };
  if (std::ranges::any_of(settings.token, is_odd))
    throw Error(
        Fault::usage, "hub.token",
        fmt::format("the token of {} has characters that no token has", settings.token_origin),
        "log in again (hf auth login), or set HF_TOKEN");
}

int seconds_of(const char* name, int otherwise) {
  const std::string text = variable(name);
  int seconds = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, seconds).ptr != end || seconds <= 0) return otherwise;
  return seconds;
}

}  // namespace

fs::path cache_directory() {
  if (const std::string cache = first_of({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}); !cache.empty())
    return expanded(cache);
  const fs::path home = hf_home();
  return home.empty() ? home : home / "hub";
}

HubSettings settings_of_environment() {
  HubSettings settings;
  if (std::string endpoint = variable("HF_ENDPOINT"); !endpoint.empty()) {
    while (endpoint.ends_with('/'))
      endpoint.pop_back();
    if (!endpoint.starts_with("https://") && !endpoint.starts_with("http://"))
      throw Error(Fault::usage, "hub.endpoint", fmt::format("HF_ENDPOINT is '{}'", endpoint),
                  "expected https://HOST or http://HOST");
    settings.endpoint = endpoint;
  }
  settings.cache = cache_directory();
  settings.is_offline = is_on("HF_HUB_OFFLINE") || is_on("TRANSFORMERS_OFFLINE");
  settings.makes_links = !is_on("HF_HUB_DISABLE_SYMLINKS");
  settings.connect_timeout_s = seconds_of("HF_HUB_ETAG_TIMEOUT", settings.connect_timeout_s);
  settings.stall_timeout_s = seconds_of("HF_HUB_DOWNLOAD_TIMEOUT", settings.stall_timeout_s);
  if (!settings.is_offline) read_token(settings);
  return settings;
}

}  // namespace ferry::hub
