// tokenizer_bench MODEL_DIR FILE [MAX_LENGTH]: how many lines and megabytes a second one thread
// encodes, the best of five passes over the file's lines. bench_tokenizers.py runs it beside
// Hugging Face's.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/text/tokenizer.h"

namespace {

/** Processor time, so that other work on the machine does not count. */
double seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

void measure(const char* model_dir, const char* file, int64_t max_length) {
  const double start_s = seconds();
  const ferry::Tokenizer tokenizer = ferry::Tokenizer::open(model_dir);
  const double open_s = seconds() - start_s;

  std::vector<std::string> lines;
  std::ifstream stream(file);
  size_t n_bytes = 0, n_tokens = 0;
  for (std::string line; std::getline(stream, line); n_bytes += line.size())
    lines.push_back(line);
  double best_s = 1e9;
  ferry::Encoding encoding;
  for (int pass = 0; pass < 5; ++pass) {
    n_tokens = 0;
    const double pass_start_s = seconds();
    for (const std::string& line : lines) {
      tokenizer.encode(line, max_length, encoding);
      n_tokens += encoding.ids.size();
    }
    best_s = std::min(best_s, seconds() - pass_start_s);
  }
  fmt::print(
      "{{\"lines_per_s\": {:.0f}, \"mb_per_s\": {:.2f}, \"tokens\": {}, \"open_ms\": {:.1f}}}\n",
      static_cast<double>(lines.size()) / best_s, static_cast<double>(n_bytes) / best_s / 1e6,
      n_tokens, open_s * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: tokenizer_bench MODEL_DIR FILE [MAX_LENGTH]\n");
    return 2;
  }
  try {
    measure(argv[1], argv[2], argc > 3 ? std::atoll(argv[3]) : ferry::Tokenizer::kNoLimit);
  } catch (const ferry::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
