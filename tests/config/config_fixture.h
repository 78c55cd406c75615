#pragma once
// Helpers that the config tests share: a temporary file, a parsed command line, the message of an
// Error.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/config/command_line/command_line.h"

namespace ferry::config {

/** A directory that is removed at the end. */
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "ferry-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline CommandLine parse(const std::string& verb,
                         const std::vector<std::string>& arguments,
                         const Environment& environment = {}) {
  return parse_command_line(verb, arguments, environment);
}

/** The words of a command line; one that is empty or has blanks stands between single quotes. */
inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> std::quoted(word, '\'');)
    words.push_back(word);
  return words;
}

/** "train --seed 1" */
inline CommandLine parse(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  return parse(words.front(), {words.begin() + 1, words.end()});
}

/** The message of the Error(usage) that `action` throws; empty (and a failure) when it throws none.
 */
template <typename Action>
std::string usage_error(Action action, Fault fault = Fault::usage) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), static_cast<int>(fault)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

/** The message that refuses a command line. */
inline std::string refusal(const std::string& line) {
  return usage_error([&] { parse(line); });
}
inline std::string refusal(const std::string& verb,
                           const std::vector<std::string>& arguments,
                           const Environment& environment = {}) {
  return usage_error([&] { parse(verb, arguments, environment); });
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/** One of the notes holds this. */
inline bool says(const CommandLine& command, std::string_view part) {
  return std::ranges::any_of(command.notes,
                             [&](const std::string& note) { return contains(note, part); });
}

}  // namespace ferry::config

#define EXPECT_CONTAINS(text, part)                                                           \
  EXPECT_PRED2(                                                                               \
      [](std::string_view t, std::string_view p) { return ::ferry::config::contains(t, p); }, \
      text, part)
