// tokenize_lines MODEL_DIR: the tokenizer for compare_tokenizers.py. Reads JSON arrays, one a line,
// from stdin: [text], [text, max_length], [text, text] or [text, text, max_length]; writes for each
// a line of JSON: ids, type ids, offsets in bytes, texts, and what the ids decode to without and
// with special tokens. Encoding with and without offsets has to give the same ids. A list of words
// in place of a text is encoded word by word: ids, type ids and the first token of each word. An
// Error ends it: its message on stderr, its exit code.

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/error.h"
#include "src/text/tokenizer.h"

namespace {

nlohmann::json answer(const ferry::Tokenizer& tokenizer, const ferry::Encoding& encoding) {
  nlohmann::json offsets = nlohmann::json::array();
  for (const ferry::text::Span& span : encoding.offsets)
    offsets.push_back({span.begin, span.end});
  return {{"ids", encoding.ids},
          {"types", encoding.type_ids},
          {"offsets", offsets},
          {"texts", encoding.texts},
          {"decoded", tokenizer.decode(encoding.ids)},
          {"decoded_whole", tokenizer.decode(encoding.ids, false)}};
}

nlohmann::json answer_to_words(const ferry::Tokenizer& tokenizer, const nlohmann::json& request) {
  const auto words = request[0].get<std::vector<std::string>>();
  ferry::Encoding encoding;
  std::vector<int32_t> first_tokens;
  tokenizer.encode_words(std::vector<std::string_view>(words.begin(), words.end()),
                         request.size() > 1 ? request[1].get<int64_t>() : tokenizer.kNoLimit,
                         encoding, first_tokens);
  return {{"ids", encoding.ids}, {"types", encoding.type_ids}, {"first", first_tokens}};
}

void tokenize_all(const ferry::Tokenizer& tokenizer) {
  std::ios::sync_with_stdio(false);
  ferry::Encoding encoding, plain;
  std::string input;
  while (std::getline(std::cin, input)) {
    const nlohmann::json request = nlohmann::json::parse(input);
    if (request[0].is_array()) {
      std::cout << answer_to_words(tokenizer, request).dump() << '\n';
      continue;
    }
    const bool is_pair = request.size() > 1 && request[1].is_string();
    const size_t n_texts = is_pair ? 2 : 1;
    const int64_t max_length =
        request.size() > n_texts ? request[n_texts].get<int64_t>() : ferry::Tokenizer::kNoLimit;
    const auto& text = request[0].get_ref<const std::string&>();
    const auto encode = [&](ferry::Encoding& out, ferry::Offsets offsets) {
      if (is_pair)
        tokenizer.encode_pair(text, request[1].get_ref<const std::string&>(), max_length, out,
                              offsets);
      else
        tokenizer.encode(text, max_length, out, offsets);
    };
    encode(plain, ferry::Offsets::skip);
    encode(encoding, ferry::Offsets::keep);
    FERRY_CHECK(plain.ids == encoding.ids && plain.type_ids == encoding.type_ids,
                "other ids without offsets: {}", input);
    std::cout << answer(tokenizer, encoding).dump() << '\n';
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
