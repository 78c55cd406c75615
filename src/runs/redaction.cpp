#include "src/runs/redaction.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>

#include "src/base/utf8.h"

namespace ferry::runs {
namespace {

constexpr size_t kRedactedLine_bytes_max = 4000;  // std::regex recurses over what it reads
constexpr size_t kQuoted_bytes_max = 160;
constexpr auto kFlags = std::regex::ECMAScript | std::regex::icase;

struct Patterns {
  /** The forms of tokens of well-known services. */
  std::regex tokens{
      R"(\b(hf_[a-z0-9]{8,}|sk-[\w-]{16,}|gh[pousr]_[a-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|)"
      R"(AKIA[0-9A-Z]{12,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]+))",
      kFlags};
  /** `hub_token = "..."`, `"api_key": "..."`, `PASSWORD=...` */
  std::regex named{
      R"(((?:token|secret|password|passwd|passphrase|credentials?|apikey|[_-]key)["']?\s*[=:]\s*))"
      R"(("[^"]*"?|'[^']*'?|[^\s,;]+))",
      kFlags};
  /** `--hub-token ...`, `Bearer ...` */
  std::regex followed{
      R"((--[\w-]*(?:token|secret|password|passwd|key)\s+|bearer\s+)("[^"]*"?|'[^']*'?|\S+))",
      kFlags};
  /** `sample_prompts = "..."`, `--sample-prompts '...'`, `stop = [...]`: texts of the user's,
   * however quoted. */
  std::regex prompts{
      R"((sample[_-]prompts\b|label[_-]names\b|--stop\b|\bstop(?= was\b|\s*=))(?:'[^']*'|"[^"]*"|(?! --).)*)",
      kFlags};
  std::regex text_name{R"(sample[_-]prompts|label[_-]names|stop)", kFlags};
  std::regex user_in_url{R"((://)[^/\s@]+@)", kFlags};
  std::regex secret_name{
      R"(.*(token|secret|password|passwd|passphrase|credentials?|apikey|[_-]key)$)", kFlags};
  std::regex quoted{R"((["'`])([^"'`]*)(["'`]))"};
  std::regex path{R"((^|[\s=(\[,<>"'`])(/[^\s"'`,;:()\[\]<>]+))"};
};

/** Made on first use: it takes milliseconds that other verbs have no need of. */
const Patterns& patterns() {
  static const Patterns all;
  return all;
}

/** Every match replaced by what `make` gives for it. */
template <typename Make>
std::string replaced(const std::string& text, const std::regex& pattern, Make make) {
  std::string out;
  auto end = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), none; it != none; ++it) {
    out.append(end, (*it)[0].first);
    out += make(*it);
    end = (*it)[0].second;
  }
  return out.append(end, text.cend());
}

/** Quoted: a path may have blanks in it then. */
bool is_quoted_path(const std::string& text) {
  return text.find('/') != text.npos && text.find("://") == text.npos;
}

/** Absolute, or one word with a slash in it. */
bool is_path(const std::string& text) {
  if (text.starts_with('/') || text.starts_with("~/")) return true;
  return text.find('/') != text.npos && text.find_first_of(" \t") == text.npos &&
         text.find("://") == text.npos;
}

}  // namespace

Redaction::Redaction(std::string home, const std::vector<std::string>& paths)
    : home_(std::move(home)) {
  for (const std::string& path : paths)
    for (std::filesystem::path at = path;
         at.string().find('/') != std::string::npos && at != at.root_path() && at.string() != home_;
         at = at.parent_path())
      if (at.has_filename()) paths_.push_back(at.string());
  std::ranges::sort(paths_, std::ranges::greater(), &std::string::size);
}

std::string Redaction::dots(const std::string& path) const {
  const bool is_home = path.starts_with('~') || (!home_.empty() && path.starts_with(home_ + "/"));
  return is_home ? "~/..." : "...";
}

std::string Redaction::shortened(const std::string& path) const {
  std::filesystem::path given(path);
  if (!given.has_filename()) given = given.parent_path();  // "runs/"
  return dots(path) + "/" + given.filename().string();
}

std::string Redaction::line(std::string line) const {
  if (line.size() > kRedactedLine_bytes_max) line.resize(kRedactedLine_bytes_max);
  for (const std::string& path : paths_)
    for (size_t at = 0; (at = line.find(path, at)) != line.npos;) {
      const bool goes_on = at + path.size() < line.size() && line[at + path.size()] == '/';
      const std::string instead = goes_on ? dots(path) : shortened(path);
      line.replace(at, path.size(), instead);
      at += instead.size();
    }
  line = std::regex_replace(line, patterns().tokens, "***");
  line = std::regex_replace(line, patterns().named, "$1***");
  line = std::regex_replace(line, patterns().followed, "$1***");
  line = std::regex_replace(line, patterns().prompts, "$1 ...");
  line = std::regex_replace(line, patterns().user_in_url, "$1***@");
  line = replaced(line, patterns().quoted, [this](const std::smatch& match) {
    const std::string inside = match[2].str();
    if (is_quoted_path(inside)) return match[1].str() + shortened(inside) + match[3].str();
    return inside.size() > kQuoted_bytes_max ? match[1].str() + "..." + match[3].str()
                                             : match[0].str();
  });
  line = replaced(line, patterns().path, [this](const std::smatch& match) {
    return match[1].str() + shortened(match[2].str());
  });
  if (home_.size() > 1)
    for (size_t at = 0; (at = line.find(home_, at)) != line.npos; ++at)
      line.replace(at, home_.size(), "~");
  return line;
}

std::string Redaction::text(std::string_view text) const {
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += escaped(line(std::string(text.substr(begin, end - begin))));
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

void Redaction::clean(nlohmann::ordered_json& value) const {
  if (value.is_string()) {
    const auto whole = value.get<std::string>();
    value = is_path(whole) ? shortened(whole) : text(whole);
  } else if (value.is_array()) {
    for (auto& element : value)
      clean(element);
  } else if (value.is_object()) {
    for (auto& [key, member] : value.items())
      if (std::regex_match(key, patterns().secret_name) && !member.is_number())
        member = "***";
      else if (std::regex_match(key, patterns().text_name))
        member = "...";
      else
        clean(member);
  }
}

}  // namespace ferry::runs
