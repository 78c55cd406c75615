#include "src/data/read/given_texts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

Example example_of_line(std::string_view line, size_t number, bool is_pair) {
  const auto refuse = [&](std::string_view what, std::string_view hint) {
    throw Error(Fault::data, "data.read", fmt::format("line {} of standard input {}", number, what),
                hint);
  };
  if (first_invalid_utf8(line) != line.npos) refuse("is not UTF-8", "convert it with iconv");
  if (!is_pair) return {.text = std::string(line)};
  const size_t tab = line.find('\t');
  if (tab == line.npos || line.find('\t', tab + 1) != line.npos)
    refuse("is no pair of texts", "write both with one tab between them");
  return {.text = std::string(line.substr(0, tab)), .text_pair = std::string(line.substr(tab + 1))};
}

}  // namespace

std::vector<Example> examples_of_words(const std::vector<std::string>& words, bool are_pairs) {
  for (const std::string& word : words)
    if (first_invalid_utf8(word) != std::string::npos)
      throw Error(Fault::data, "data.read", fmt::format("the text '{}' is not UTF-8", word),
                  "convert it with iconv");
  std::vector<Example> examples;
  if (are_pairs && words.size() % 2 != 0)
    throw Error(Fault::usage, "data.pairs",
                fmt::format("{} texts are given, and pairs take two each", words.size()),
                "quote each text: ferry predict --model M --pairs \"first text\" \"second text\"");
  for (size_t i = 0; i < words.size(); i += are_pairs ? 2 : 1) {
    Example& example = examples.emplace_back();
    example.text = words[i];
    if (are_pairs) example.text_pair = words[i + 1];
  }
  return examples;
}

std::vector<Example> read_standard_input(bool are_pairs) {
  const std::string text = read_stream(STDIN_FILENO, "standard input");
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  std::vector<Example> examples;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    examples.push_back(example_of_line(line, examples.size() + 1, are_pairs));
  }
  if (examples.empty())
    throw Error(Fault::data, "data.read", "no texts on standard input",
                "give one text a line, or --dataset");
  return examples;
}

}  // namespace ferry
