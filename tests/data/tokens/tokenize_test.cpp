// Examples to tokens on many threads: the order, the faults, documents that come in parts.

#include "src/data/tokens/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/base/process/host_memory.h"
#include "src/data/batch.h"
#include "src/data/sampler.h"
#include "src/data/tokenized.h"
#include "src/data/tokens/token_file.h"
#include "src/data/tokens/window_cutter.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using ::testing::ElementsAre;

/** Words of numbers, one token each. */
void numbers(const Example& example, std::vector<TokenizedExample>& out) {
  TokenizedExample& sample = out.emplace_back();
  sample.part = example.part;
  for (size_t at = 0; at < example.text.size();) {
    size_t n = 0;
    sample.ids.push_back(std::stoi(example.text.substr(at), &n));
    at += n + 1;
  }
}

TokenizedDataset tokens_of(const std::vector<Example>& examples,
                           const Tokenize& tokenize,
                           TokenizeOptions options) {
  MemoryWriter writer({.keeps_examples = true});
  tokenize_examples(*stream_of(examples), tokenize, options, writer);
  return TokenizedDataset(writer.finish());
}

TEST(WindowCutter, AreThoseOfTheWholeHoweverItIsCut) {
  for (int n = 0; n < 30; ++n)
    for (int n_first = 0; n_first <= n; ++n_first) {
      std::vector<int32_t> ids;
      for (int i = 0; i < n; ++i)
        ids.push_back(i);
      std::vector<std::vector<int32_t>> got;
      const auto take = [&](const std::vector<int32_t>& window) { got.push_back(window); };
      WindowCutter windows(7);
      windows.add(std::span(ids).first(static_cast<size_t>(n_first)), take);
      windows.add(std::span(ids).subspan(static_cast<size_t>(n_first)), take);
      windows.finish(take);
      // A single token stays only where it is the whole document.
      std::vector<std::vector<int32_t>> expected;
      for (int begin = 0; begin < n && (begin == 0 || n - begin > 1); begin += 7)
        expected.emplace_back(ids.begin() + begin, ids.begin() + std::min(begin + 7, n));
      EXPECT_EQ(got, expected) << n << " " << n_first;
    }
}

TEST(TokenizeExamples, PartsOfADocumentAreOne) {
  const std::vector<Example> examples = {{.text = "1 2 3 4 5"},
                                         {.text = "10 11 12 13 14", .part = TextPart::first},
                                         {.text = "15", .part = TextPart::middle},
                                         {.text = "16 17 18 19", .part = TextPart::last},
                                         {.text = "20 21"}};
  for (int n_threads : {1, 4}) {
    const auto data = tokens_of(examples, numbers, {.n_threads = n_threads, .window = 4});
    ASSERT_EQ(data.n_sequences(), 5);
    EXPECT_THAT(data.ids(0), ElementsAre(1, 2, 3, 4, 5));
    EXPECT_THAT(data.ids(1), ElementsAre(10, 11, 12, 13));
    EXPECT_THAT(data.ids(2), ElementsAre(14, 15, 16, 17));
    EXPECT_THAT(data.ids(3), ElementsAre(18, 19));
    EXPECT_THAT(data.ids(4), ElementsAre(20, 21));
    EXPECT_EQ(data.example_of(3), 1);
    EXPECT_EQ(data.example_of(4), 2);
    EXPECT_EQ(data.n_examples(), 3);
  }
}

TEST(TokenizeExamples, ManyChunksKeepTheirOrder) {
  std::vector<Example> examples;
  for (int i = 0; i < 3000; ++i)
    examples.push_back({.text = std::to_string(i) + std::string(2000, ' ')});
  const Tokenize slow = [](const Example& example, std::vector<TokenizedExample>& out) {
    const int number = std::stoi(example.text);
    if (number % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    out.push_back({.ids = {number}});
  };
  int64_t n_told = 0;
  TokenizeOptions options = {.n_threads = 8, .progress = [&](int64_t) { ++n_told; }};
  const auto data = tokens_of(examples, slow, options);
  ASSERT_EQ(data.n_sequences(), 3000);
  for (int i = 0; i < 3000; ++i)
    ASSERT_EQ(data.ids(i).front(), i);
  EXPECT_GT(n_told, 4);
}

/** Whatever thread comes first, the message is that of the earliest fault. */
TEST(TokenizeExamples, TheEarliestFaultIsSaid) {
  std::vector<Example> examples;
  for (int i = 0; i < 40; ++i)
    examples.push_back({.text = std::to_string(i) + std::string(1 << 20, ' ')});
  const Tokenize fails = [](const Example& example, std::vector<TokenizedExample>& out) {
    const int number = std::stoi(example.text);
    if (number == 7) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    if (number >= 7) throw std::runtime_error(std::to_string(number));
    out.push_back({.ids = {number}});
  };
  for (int round = 0; round < 5; ++round) {
    std::string what;
    try {
      tokens_of(examples, fails, {.n_threads = 8});
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "7");
  }
}

/** A stream that fails after some examples. */
class FailingStream : public ExampleStream {
 public:
  bool next(Example& example) override {
    if (++n_ > 5000) throw std::runtime_error("the disk");
    example = {.text = "1"};
    return true;
  }

 private:
  int n_ = 0;
};

TEST(TokenizeExamples, AFaultOfReadingIsRethrown) {
  for (int n_threads : {1, 4}) {
    MemoryWriter writer({});
    FailingStream stream;
    TokenizeOptions options;
    options.n_threads = n_threads;
    EXPECT_THROW(tokenize_examples(stream, numbers, options, writer), std::runtime_error);
  }
}

/** The process's own writable memory, as RLIMIT_DATA counts it. */
rlim_t own_bytes() {
  return static_cast<rlim_t>(process_status_bytes("VmData"));
}

/** Tokenizes a file and lays all of it out in batches; exits with 0. */
void run_with_memory(const DatasetOptions& options,
                     const std::filesystem::path& tokens,
                     rlim_t n_bytes) {
  const rlimit limit = {own_bytes() + n_bytes, own_bytes() + n_bytes};
  ::setrlimit(RLIMIT_DATA, &limit);
  const auto reader = open_dataset(options);
  FileWriter writer({.vocab_size = 256}, tokens, 1);
  // Each byte is a token.
  const Tokenize bytes = [](const Example& example, std::vector<TokenizedExample>& out) {
    TokenizedExample& sample = out.emplace_back();
    for (const char c : example.text)
      sample.ids.push_back(static_cast<unsigned char>(c));
    sample.part = example.part;
  };
  tokenize_examples(*reader->examples(), bytes, {.n_threads = 2, .window = 2048}, writer);
  const TokenizedDataset packed = TokenizedDataset(writer.finish()).packed(4096);
  const Sampler sampler(packed.size(), 3);
  MicroBatch batch;
  int64_t n_tokens = 0;
  for (int64_t i = 0; i < packed.size(); ++i) {
    collate(packed, std::vector<int64_t>{sampler.at(0, i)}, {}, 0, batch);
    n_tokens += batch.n_real_tokens;
  }
  std::_Exit(n_tokens == packed.n_tokens() && n_tokens > 90'000'000 ? 0 : 1);
}

TEST(TokenizeExamplesDeathTest, TextsMayBeLargerThanMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer takes more memory than the test allows";
#endif
  const test::TempDir dir;
  constexpr int64_t kText_bytes = 96 << 20;
  constexpr rlim_t kMemory_bytes = 32 << 20;
  const std::string line(1200, 'x');
  {
    std::ofstream rows(dir / "x.jsonl"), document(dir / "x.txt");
    for (int64_t n = 0; n < kText_bytes; n += std::ssize(line)) {
      rows << "{\"text\": \"" << line << "\"}\n";
      document << line << '\n';
    }
  }
  for (const char* name : {"x.jsonl", "x.txt"}) {
    const DatasetOptions options = {
        .path = dir / name, .rows = RowForm::documents, .labels = LabelUse::ignored};
    EXPECT_EXIT(run_with_memory(options, dir / "x.tokens", kMemory_bytes),
                ::testing::ExitedWithCode(0), "")
        << name;
  }
}

}  // namespace
}  // namespace ferry
