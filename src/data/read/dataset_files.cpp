#include "src/data/read/dataset_files.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "src/base/error.h"
#include "src/data/example.h"
#include "src/files/hub/dataset_choice.h"

namespace ferry {
namespace {

namespace stdfs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code code;
  // A path that cannot be looked at is no pattern: its reader says why.
  return stdfs::symlink_status(path, code).type() != stdfs::file_type::not_found;
}

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::string_view rest = name; !rest.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    if (const auto part = trim(rest.substr(0, end)); !part.empty()) parts.emplace_back(part);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return parts;
}

bool is_pattern(const std::string& part) {
  return part.find_first_of("*?[") != part.npos && !exists(part);
}

/** The current directory in front of a pattern, its own characters as they stand. */
std::string absolute_pattern(const std::string& pattern) {
  if (pattern.starts_with('/')) return pattern;
  std::error_code code;
  std::string all;
  for (const char c : stdfs::current_path(code).string()) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) all += '\\';
    all += c;
  }
  return all + "/" + pattern;
}

std::vector<std::string> matches_of(const std::string& pattern) {
  struct Matches : glob_t {
    Matches() : glob_t{} {}
    Matches(const Matches&) = delete;
    Matches& operator=(const Matches&) = delete;
    ~Matches() { globfree(this); }
  } found;
  // It would sort by the user's language; the order of texts is the same on every machine.
  const int fault = glob(pattern.c_str(), GLOB_NOSORT | GLOB_ERR, nullptr, &found);
  if (fault == GLOB_NOMATCH)
    throw Error(Fault::data, "data.open", fmt::format("no file matches '{}'", pattern),
                "check the pattern, and quote it: the shell may replace it first");
  if (fault != 0)
    throw Error(Fault::data, "data.open",
                fmt::format("the files that match '{}' cannot be listed", pattern),
                "check the permissions of its directories");
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

std::vector<stdfs::path> dataset_files(const std::string& name) {
  if (exists(name)) {
    if (auto saved = hub::saved_dataset_files(name)) return std::move(*saved);
    return {name};
  }
  std::vector<stdfs::path> files;
  std::set<std::string> seen;
  const auto add = [&](const std::string& path) {
    if (!seen.insert(stdfs::path(path).lexically_normal().string()).second)
      throw Error(Fault::data, "data.open",
                  fmt::format("'{}' names the file '{}' twice", name, path),
                  "its texts would count twice; name it once");
    files.emplace_back(path);
  };
  for (const std::string& part : parts_of(name)) {
    if (const auto of_hub = hub::parse_dataset_name(part)) {
      for (const stdfs::path& path : hub::cached_dataset_files(*of_hub))
        add(path.string());
      continue;
    }
    if (!is_pattern(part)) {
      add(part);
      continue;
    }
    for (const std::string& path : matches_of(part))
      add(path);
  }
  if (files.empty()) files.emplace_back(name);
  return files;
}

std::vector<std::string> dataset_parts(const std::string& name) {
  return exists(name) ? std::vector<std::string>{name} : parts_of(name);
}

std::string absolute_dataset(const std::string& name) {
  std::error_code code;
  const auto absolute = [&](const std::string& path) {
    return stdfs::absolute(path, code).lexically_normal().string();
  };
  if (exists(name)) return absolute(name);
  std::string all;
  for (const std::string& part : parts_of(name)) {
    const auto of_hub = hub::parse_dataset_name(part);
    all += (all.empty() ? "" : ",") + (of_hub             ? hub::with_commit(*of_hub).text()
                                       : is_pattern(part) ? absolute_pattern(part)
                                                          : absolute(part));
  }
  return all.empty() ? absolute(name) : all;
}

}  // namespace ferry
