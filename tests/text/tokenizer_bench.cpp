// tokenizer_bench MODEL_DIR THREADS MAX_LENGTH PASSES FILE...: how much text a second the tokenizer
// encodes on so many threads at once, for each file the middle one of so many passes over its
// lines, after one that does not count; MAX_LENGTH 0 is no limit. A line of JSON a file;
// bench_tokenizers.py runs it beside Hugging Face's.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "src/text/tokenizer.h"

namespace {

/** Processor time of all threads, so that other work on the machine does not count. */
double seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

struct Pass {
  double cpu_s = 0;
  size_t n_tokens = 0;
};

Pass encode_all(const ferry::Tokenizer& tokenizer,
                const std::vector<std::string>& lines,
                int n_threads,
                int64_t max_length) {
  std::atomic<size_t> n_tokens = 0, next = 0;
  const double start_s = seconds();
  const auto work = [&] {
    constexpr size_t kBatch = 64;
    ferry::Encoding encoding;
    size_t n = 0;
    for (size_t first; (first = next.fetch_add(kBatch)) < lines.size();)
      for (size_t i = first; i < std::min(first + kBatch, lines.size()); ++i) {
        tokenizer.encode(lines[i], max_length, encoding);
        n += encoding.ids.size();
      }
    n_tokens += n;
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < n_threads; ++i)
      others.emplace_back(work);
    work();
  }
  return {seconds() - start_s, n_tokens};
}

struct Work {
  int n_threads = 1;
  int64_t max_length = 0;
  int n_passes = 1;
};

void measure(const ferry::Tokenizer& tokenizer, const char* file, const Work& work, double open_s) {
  std::vector<std::string> lines;
  std::ifstream stream(file);
  size_t n_bytes = 0;
  for (std::string line; std::getline(stream, line); n_bytes += line.size())
    lines.push_back(line);
  std::vector<Pass> passes;
  for (int i = 0; i <= work.n_passes; ++i)
    passes.push_back(encode_all(tokenizer, lines, work.n_threads, work.max_length));
  passes.erase(passes.begin());
  const auto middle = passes.begin() + work.n_passes / 2;
  std::nth_element(passes.begin(), middle, passes.end(),
                   [](const Pass& a, const Pass& b) { return a.cpu_s < b.cpu_s; });
  fmt::print("{{\"mb_per_cpu_s\": {:.3f}, \"tokens\": {}, \"open_ms\": {:.1f}}}\n",
             static_cast<double>(n_bytes) / middle->cpu_s / 1e6, middle->n_tokens, open_s * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: tokenizer_bench MODEL_DIR THREADS MAX_LENGTH PASSES FILE...\n");
    return 2;
  }
  try {
    const double start_s = seconds();
    const ferry::Tokenizer tokenizer = ferry::Tokenizer::open(argv[1]);
    const double open_s = seconds() - start_s;
    const int64_t max_length = std::atoll(argv[3]);
    const Work work = {std::max(1, std::atoi(argv[2])),
                       max_length > 0 ? max_length : ferry::Tokenizer::kNoLimit,
                       std::max(1, std::atoi(argv[4]))};
    for (int i = 5; i < argc; ++i)
      measure(tokenizer, argv[i], work, open_s);
  } catch (const ferry::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
