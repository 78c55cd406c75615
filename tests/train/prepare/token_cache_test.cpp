// Runs on tokens that are kept: the bits of runs that keep none, whoever made the tokens and
// whatever became of them; more text than memory; leaving while texts are tokenized.

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class TokenCacheRuns : public RunTest {
 protected:
  /** Six steps on a CPU. */
  static std::vector<std::string> short_run(const std::string& run,
                                            const std::string& cache,
                                            const std::vector<std::string>& data) {
    std::vector<std::string> words = {"train",
                                      "--model=model",
                                      "--device=cpu",
                                      "--micro-batch-size=4",
                                      "--train-batch-size=8",
                                      "--lr=3e-3",
                                      "--max-steps=6",
                                      "--save-steps=6",
                                      "--intra-op-threads=1",
                                      "--token-cache=" + cache,
                                      "--output-dir=" + run};
    words.insert(words.end(), data.begin(), data.end());
    return words;
  }
  /** Lines for an encoder's language model. */
  static std::vector<std::string> lines_of(const std::string& file) {
    return {"--task=mlm", "--dataset=" + file, "--max-length=16"};
  }
  static std::vector<fs::path> token_files(const fs::path& directory) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error))
      if (entry.path().extension() == ".tokens") files.push_back(entry.path());
    return files;
  }
  static std::string said() { return text_of(root_ / "out") + text_of(root_ / "err"); }
  static bool says(const std::string& text) { return said().find(text) != std::string::npos; }

  static void expect_same(const std::string& a, const std::string& b) {
    EXPECT_EQ(curve_of(a), curve_of(b));
    for (const char* file :
         {"final/model.safetensors", "predictions.jsonl", "checkpoint-6/state/run_state.json"})
      EXPECT_EQ(text_of(root_ / a / file), text_of(root_ / b / file)) << b << "/" << file;
  }

  /** Lines of the model's words, each of some line_bytes. */
  static void write_lines(const fs::path& file, int64_t n_bytes, size_t line_bytes = 40) {
    std::string block, line;
    std::istringstream rows(text_of(root_ / "train.tsv"));
    std::string row;
    std::getline(rows, row);  // the header
    while (std::getline(rows, row)) {
      while (line.size() < line_bytes)
        line += row.substr(0, row.find('\t')) + " ";
      block += line + "\n";
      line.clear();
    }
    std::ofstream out(file);
    for (int64_t n = 0; n < n_bytes; n += static_cast<int64_t>(block.size()))
      out << block;
  }
};

TEST_F(TokenCacheRuns, BitsAreThoseOfRunsWithoutIt) {
  const std::vector<std::string> tasks[] = {
      {"--dataset=train.tsv", "--eval-dataset=dev.tsv"},
      {"--dataset=train.tsv", "--eval-fraction=0.2"},
      {"--dataset=train.tsv", "--eval-dataset=dev.tsv", "--task=mlm", "--packing=true",
       "--max-length=16"},
  };
  int n = 0;
  for (const auto& task : tasks) {
    const std::string name = "run" + std::to_string(n++), cache = name + "_tokens";
    ASSERT_EQ(ferry(short_run(name + "_off", "off", task)).code(), 0) << said();
    EXPECT_FALSE(says("tokenized"));
    ASSERT_EQ(ferry(short_run(name + "_new", cache, task)).code(), 0) << said();
    EXPECT_TRUE(says("200 texts tokenized; the tokens are kept in"));
    const auto files = token_files(root_ / cache);
    EXPECT_EQ(files.size(), n == 2 ? 1u : 2u);  // training and evaluation data, or one for both
    ASSERT_EQ(ferry(short_run(name + "_found", cache, task)).code(), 0) << said();
    EXPECT_TRUE(says("0 texts tokenized: the tokens of 200 texts are in"));
    for (const fs::path& file : files)
      fs::resize_file(file, fs::file_size(file) - 1);
    ASSERT_EQ(ferry(short_run(name + "_again", cache, task)).code(), 0) << said();
    EXPECT_TRUE(says("cannot be used: it has"));
    EXPECT_TRUE(says("200 texts tokenized; the tokens are kept in"));
    for (const char* other : {"_new", "_found", "_again"})
      expect_same(name + "_off", name + other);
  }
}

TEST_F(TokenCacheRuns, AResumedRunMayKeepTokensElsewhere) {
  const std::vector<std::string> data = {"--dataset=train.tsv", "--eval-dataset=dev.tsv"};
  ASSERT_EQ(ferry(short_run("resumed", "off", data)).code(), 0) << said();
  const Outcome more =
      ferry({"train", "--resume=resumed", "--max-steps=8", "--token-cache=elsewhere"});
  ASSERT_EQ(more.code(), 0) << more.err;  // the data are known for what they were
  EXPECT_EQ(token_files(root_ / "elsewhere").size(), 2u);
}

/** Tokens are private texts: nobody else reads them, also where the umask would let all do so. */
TEST_F(TokenCacheRuns, AreTheirOwnersAloneWithoutAUmask) {
  const auto words = short_run("unmasked", "unmasked_home/cache/tokens", {"--dataset=train.tsv"});
  const pid_t child = start_ferry(root_, words, "", [] {
    ::umask(0);
    ::setenv("XDG_DATA_HOME", (root_ / "unmasked_home/data").c_str(), 1);
  });
  ASSERT_EQ(wait_for(child).code(), 0) << said();
  ASSERT_FALSE(token_files(root_ / "unmasked_home/cache/tokens").empty());
  const auto mode_of = [](const fs::path& path) {
    return static_cast<unsigned>(fs::status(path).permissions());
  };
  EXPECT_EQ(mode_of(root_ / "unmasked"), 0700u);
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "unmasked_home")) {
    const bool is_private =
        entry.is_directory() || entry.path().string().find("/tokens/") != std::string::npos;
    EXPECT_EQ(mode_of(entry.path()) & (is_private ? 077u : 02u), 0u) << entry.path();
  }
}

/** Damage that shows only when tokens are read ends the run by name, and the next makes them anew.
 */
TEST_F(TokenCacheRuns, ADamagedPieceIsMadeAgain) {
  write_lines(root_ / "lines.txt", 2 << 20);
  ASSERT_EQ(ferry(short_run("right", "pieces", lines_of("lines.txt"))).code(), 0) << said();
  const auto files = token_files(root_ / "pieces");
  ASSERT_EQ(files.size(), 1u);
  {
    std::fstream stream(files[0], std::ios::in | std::ios::out | std::ios::binary);
    uint64_t index_begin = 0;
    stream.seekg(24);
    stream.read(reinterpret_cast<char*>(&index_begin), sizeof index_begin);
    constexpr uint64_t kPiece_bytes = 256 << 10;
    ASSERT_GT(index_begin, 4 * kPiece_bytes);
    // All of the data but its last piece, which has index entries, too.
    for (uint64_t at = 5000; at + kPiece_bytes < index_begin; at += kPiece_bytes) {
      stream.seekp(static_cast<std::streamoff>(at));
      stream.put('\x7f');
    }
  }
  const std::string damaged = text_of(files[0]);
  EXPECT_EQ(ferry(short_run("early", "pieces", lines_of("lines.txt"))).code(), 4);
  EXPECT_TRUE(says(".tokens' is damaged: its bytes"));
  EXPECT_FALSE(fs::exists(root_ / "early")) << "all tokens are looked at before the run begins";
  // A run that looks at none finds the damage when it comes to it.
  std::ofstream(files[0], std::ios::binary) << damaged;
  std::vector<std::string> unseen = short_run("damaged", "pieces", lines_of("lines.txt"));
  unseen.push_back("--preflight=off");
  EXPECT_EQ(ferry(unseen).code(), 4);
  EXPECT_TRUE(says(".tokens' is damaged: its bytes"));
  EXPECT_TRUE(says("it was removed; start again"));
  EXPECT_EQ(ferry({"train", "--resume=damaged"}).code(), 0) << said();
  expect_same("right", "damaged");
}

TEST_F(TokenCacheRuns, TwoRunsAtOnceMakeTokensOnce) {
  write_lines(root_ / "lines.txt", 4 << 20);
  const pid_t first = start(short_run("one", "shared", lines_of("lines.txt")), "one_"),
              second = start(short_run("two", "shared", lines_of("lines.txt")), "two_");
  EXPECT_EQ(wait_for(first, "one_").code(), 0) << text_of(root_ / "one_err");
  EXPECT_EQ(wait_for(second, "two_").code(), 0) << text_of(root_ / "two_err");
  expect_same("one", "two");
  EXPECT_EQ(token_files(root_ / "shared").size(), 1u);
  int n_made = 0;
  for (const char* out : {"one_out", "two_out", "one_err", "two_err"})
    n_made += text_of(root_ / out).find("the tokens are kept in") != std::string::npos;
  EXPECT_EQ(n_made, 1);
}

TEST_F(TokenCacheRuns, LeavingWhileTextsAreTokenized) {
  write_lines(root_ / "many.txt", 64 << 20);
  const pid_t child = start(short_run("left", "auto", lines_of("many.txt")));
  const fs::path tokens = root_ / "cache/ferry/tokens";
  wait_until([&] {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(tokens, error))
      if (entry.path().filename().string().find(".tokens.tmp-") != std::string::npos &&
          fs::file_size(entry.path(), error) > (1 << 20))
        return true;
    return false;
  });
  ::kill(child, SIGINT);
  EXPECT_EQ(wait_for(child).code(), 130);
  EXPECT_TRUE(says("left before the first step; nothing was trained or changed"));
  EXPECT_TRUE(token_files(tokens).empty());
  EXPECT_FALSE(fs::exists(root_ / "left"));
}

/** Anonymous memory is limited to a fraction of the text: files that are mapped do not count. */
TEST_F(TokenCacheRuns, MoreTextThanMemory) {
  if (!is_long()) GTEST_SKIP() << "FERRY_LONG=1 trains on 1 GiB of text with 256 MiB of memory";
#ifdef FERRY_WITH_CUDA
  GTEST_SKIP() << "the libraries of CUDA alone take more than 256 MiB";
#endif
  constexpr int64_t kText_bytes = 1 << 30, kMemory_bytes = 256 << 20;
  write_lines(root_ / "much.txt", kText_bytes, /*line_bytes=*/1000);
  rlimit before{};
  ::getrlimit(RLIMIT_DATA, &before);
  const rlimit limit = {.rlim_cur = kMemory_bytes, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_DATA, &limit);
  const auto data = lines_of("much.txt");
  const Outcome without =
      ferry(short_run("in_memory", "off", {"--task=mlm", "--dataset=much.txt"}));
  const Outcome with = ferry(short_run("much", "auto", data));
  const std::string first = said();
  const Outcome again = ferry(short_run("much_again", "auto", data));
  ::setrlimit(RLIMIT_DATA, &before);
  EXPECT_EQ(without.code(), 3) << without.err;
  EXPECT_EQ(with.code(), 0) << first;
  EXPECT_EQ(again.code(), 0) << said();
  EXPECT_TRUE(says("0 texts tokenized"));
  EXPECT_EQ(curve_of("much"), curve_of("much_again"));
}

}  // namespace
}  // namespace ferry::test
