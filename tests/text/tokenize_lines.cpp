// tokenize_lines MODEL_DIR: the tokenizer for compare_tokenizers.py. Reads JSON arrays, one a line,
// from stdin: [text], [text, max_length], [text, text] or [text, text, max_length]; writes for each
// a line of ids, for pairs followed by " | " and the type ids. An Error ends it: its message on
// stderr, its exit code.

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "src/base/error.h"
#include "src/text/tokenizer.h"

namespace {

void append_numbers(const std::vector<int32_t>& numbers, std::string& line) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) line.push_back(' ');
    line += std::to_string(numbers[i]);
  }
}

void tokenize_all(const ferry::Tokenizer& tokenizer) {
  std::ios::sync_with_stdio(false);
  ferry::Encoding encoding;
  std::string input, output;
  while (std::getline(std::cin, input)) {
    const nlohmann::json request = nlohmann::json::parse(input);
    const bool is_pair = request.size() > 1 && request[1].is_string();
    const size_t n_texts = is_pair ? 2 : 1;
    const int64_t max_length =
        request.size() > n_texts ? request[n_texts].get<int64_t>() : ferry::Tokenizer::kNoLimit;
    const auto& text = request[0].get_ref<const std::string&>();
    output.clear();
    if (is_pair)
      tokenizer.encode_pair(text, request[1].get_ref<const std::string&>(), max_length, encoding);
    else
      tokenizer.encode(text, max_length, encoding);
    append_numbers(encoding.ids, output);
    if (is_pair) {
      output += " | ";
      append_numbers(encoding.type_ids, output);
    }
    output.push_back('\n');
    std::cout << output;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tokenize_lines MODEL_DIR < requests.jsonl\n");
    return 2;
  }
  try {
    tokenize_all(ferry::Tokenizer::open(argv[1]));
  } catch (const ferry::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
