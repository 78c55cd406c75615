// cut_texts MODEL_DIR PART_BYTES: for compare_real_tokenizers.py. Reads a text from stdin, cuts it
// to parts of about so many bytes, and compares the ids of the parts with those of the whole.
// Prints how many parts there were and the bytes of the largest; exits with 1 where ids differ.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/text/text_cut.h"

namespace {

int compare(const ferry::Tokenizer& tokenizer, std::string_view text, size_t part_bytes) {
  std::vector<int32_t> whole, parts;
  tokenizer.append_ids(text, whole);
  size_t n_parts = 0, largest = 0, near = part_bytes;
  bool continues = false;
  while (near < text.size()) {
    const auto cut = ferry::find_text_cut(tokenizer, text, near, continues);
    if (!cut) {
      near += part_bytes;
      continue;
    }
    tokenizer.append_ids(text.substr(0, cut->at), parts, continues);
    largest = std::max(largest, cut->at);
    text.remove_prefix(cut->at);
    continues = cut->continues;
    ++n_parts;
    near = part_bytes;
  }
  tokenizer.append_ids(text, parts, continues);
  largest = std::max(largest, text.size());
  const auto differ = std::ranges::mismatch(whole, parts);
  fmt::print("{} parts, at most {} bytes, {} tokens", n_parts + 1, largest, whole.size());
  if (whole == parts) return 0;
  fmt::print(", {} in parts, other ones from token {} on", parts.size(),
             differ.in1 - whole.begin());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: cut_texts MODEL_DIR PART_BYTES < text\n");
    return 2;
  }
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  try {
    return compare(ferry::Tokenizer::open(argv[1]), text, std::stoul(argv[2]));
  } catch (const ferry::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
}
