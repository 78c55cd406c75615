// Tokens that are kept: found again, made again where they are damaged, by several processes at
// once; and how files are known again.

#include "src/data/tokens/token_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "src/base/print.h"
#include "src/data/tokenized.h"
#include "src/data/tokens/source_hash.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using test::TempDir;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr uint64_t kCacheKey = 5;
const TokenForm kForm = {.vocab_size = 1000};

void fill_cache(TokenWriter& to) {
  for (int i = 0; i < 5000; ++i) {
    to.add_example({});
    to.add({.ids = {i % 1000, 1, 2}});
  }
}

class TokenCacheTest : public ::testing::Test {
 protected:
  TokenCache::Tokens get() {
    return cache_.get(kCacheKey, kForm, [this](TokenWriter& to) {
      ++n_fills_;
      fill_cache(to);
    });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(cache_.directory()))
      names.push_back(entry.path().filename().string());
    return names;
  }
  TempDir dir_;
  TokenCache cache_{dir_ / "ferry/tokens"};
  int n_fills_ = 0;
  std::vector<std::string> said_;
  Listening listening_{[this](std::string_view line) { said_.emplace_back(line); }};
};

TEST_F(TokenCacheTest, AreMadeOnceAndFoundAgain) {
  const auto made = get();
  EXPECT_TRUE(made.are_new);
  const auto found = get();
  EXPECT_FALSE(found.are_new);
  EXPECT_EQ(n_fills_, 1);
  EXPECT_EQ(TokenizedDataset(made.store).fingerprint(),
            TokenizedDataset(found.store).fingerprint());
  EXPECT_THAT(names(), ::testing::ElementsAre("0000000000000005.tokens"));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(TokenCacheTest, ADamagedFileIsSaidAndMadeAgain) {
  const uint64_t right = TokenizedDataset(get().store).fingerprint();
  fs::resize_file(cache_.file_of(kCacheKey), 5000);
  const auto again = get();
  EXPECT_TRUE(again.are_new);
  EXPECT_EQ(TokenizedDataset(again.store).fingerprint(), right);
  EXPECT_THAT(said_, Contains(HasSubstr("cannot be used: it has 5000 bytes in place of")));
  std::ofstream(cache_.file_of(kCacheKey)) << "something else";
  EXPECT_TRUE(get().are_new);
  EXPECT_FALSE(get().are_new);
  EXPECT_EQ(n_fills_, 3);
}

TEST_F(TokenCacheTest, AFaultLeavesNothing) {
  EXPECT_THAT(error_of([&] {
                cache_.get(kCacheKey, kForm, [](TokenWriter& to) {
                  fill_cache(to);
                  throw Error(Fault::data, "x", "a bad row");
                });
              }),
              HasSubstr("a bad row"));
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_TRUE(get().are_new);
}

/** Each use counts, not the making alone. */
TEST_F(TokenCacheTest, FilesThatNobodyUsesGoWhenANewOneIsMade) {
  const auto age = [&](uint64_t key, std::chrono::hours by) {
    fs::last_write_time(cache_.file_of(key), fs::file_time_type::clock::now() - by);
  };
  const auto make = [&](uint64_t key) { return cache_.get(key, kForm, fill_cache); };
  const TokenizedDataset reader(make(1).store);
  make(2), make(3), make(4);
  const fs::path others[] = {cache_.directory() / "000000000000000g.tokens",
                             cache_.directory() / "notes.txt"};
  for (const fs::path& other : others) {
    std::ofstream(other) << "a user's own";
    fs::last_write_time(other, fs::file_time_type::clock::now() - 2 * TokenCache::kUnused);
  }
  age(1, TokenCache::kUnused + 1h);
  age(2, TokenCache::kUnused - 1h);
  age(3, TokenCache::kUnused + 1h);
  EXPECT_FALSE(make(3).are_new);
  EXPECT_TRUE(fs::exists(cache_.file_of(1))) << "what is found makes no room";
  EXPECT_TRUE(get().are_new);
  EXPECT_THAT(names(),
              ::testing::UnorderedElementsAre("0000000000000002.tokens", "0000000000000003.tokens",
                                              "0000000000000004.tokens", "0000000000000005.tokens",
                                              "000000000000000g.tokens", "notes.txt"));
  EXPECT_THAT(said_, Contains(HasSubstr("a file that nobody used for 90 days")));
  EXPECT_EQ(reader.ids(4999).front(), 999) << "who reads it has it";
  EXPECT_TRUE(make(1).are_new);
}

/** A user of files has them as long as he holds them, whoever removes or replaces them. */
TEST_F(TokenCacheTest, AFileMayGoWhileItIsRead) {
  const TokenizedDataset first(get().store);
  fs::remove(cache_.file_of(kCacheKey));
  EXPECT_TRUE(get().are_new);
  EXPECT_EQ(first.ids(4999).front(), 999);
}

/** Several processes want the same tokens: one makes them, the others wait and read. */
TEST_F(TokenCacheTest, ProcessesAtOnceMakeThemOnce) {
  constexpr int kProcesses = 6;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool was_new = false;
      const auto tokens = cache_.get(kCacheKey, kForm, [&](TokenWriter& to) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        fill_cache(to);
        was_new = true;
      });
      const bool is_right = TokenizedDataset(tokens.store).ids(4999).front() == 999;
      ::_exit(!is_right ? 2 : was_new ? 1 : 0);
    }
    children.push_back(child);
  }
  int n_makers = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_LT(WEXITSTATUS(status), 2);
    n_makers += WEXITSTATUS(status);
  }
  EXPECT_EQ(n_makers, 1);
  EXPECT_THAT(names(), ::testing::ElementsAre("0000000000000005.tokens"));
}

/** Files that a killed process leaves go with the next that writes, and its lock holds nobody.
 */
TEST_F(TokenCacheTest, AKilledProcessHoldsNobodyUp) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    cache_.get(kCacheKey, kForm, [&](TokenWriter& to) {
      fill_cache(to);
      [[maybe_unused]] const auto n = ::write(pipe_ends[1], "x", 1);
      ::pause();
    });
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(pipe_ends[0], &byte, 1), 1);
  // Another key's writer leaves the one that is being written alone.
  cache_.get(kCacheKey + 1, kForm, fill_cache);
  EXPECT_THAT(names(), Contains(HasSubstr(".0000000000000005.tokens.tmp-")));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(names(), Contains(HasSubstr(".0000000000000005.tokens.tmp-")));
  cache_.get(kCacheKey + 2, kForm, fill_cache);
  EXPECT_THAT(names(), ::testing::Not(Contains(HasSubstr(".tmp-"))));
  EXPECT_TRUE(get().are_new);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

class SourceHashTest : public ::testing::Test {
 protected:
  uint64_t hash(const std::vector<fs::path>& files) {
    n_read_ = 0;
    return SourceFiles(files).hash(known(), [this](int64_t n_bytes) { n_read_ = n_bytes; });
  }
  fs::path known() const { return dir_ / "known"; }
  /** The system's time of change, two seconds ago, is one that can be trusted. */
  static void wait_until_settled() { std::this_thread::sleep_for(std::chrono::milliseconds(2100)); }
  TempDir dir_;
  int64_t n_read_ = 0;
};

TEST_F(SourceHashTest, ContentsCountAndNotNames) {
  const auto a = dir_.write("a.txt", "one"), b = dir_.write("b.txt", "two");
  const uint64_t both = hash({a, b});
  EXPECT_NE(hash({b, a}), both);
  EXPECT_NE(hash({a}), both);
  fs::rename(a, dir_ / "c.txt");
  EXPECT_EQ(hash({dir_ / "c.txt", b}), both);
  dir_.write("b.txt", "twa");
  EXPECT_NE(hash({dir_ / "c.txt", b}), both);
  // The place where one file ends counts.
  dir_.write("b.txt", "wo"), dir_.write("c.txt", "onet");
  EXPECT_NE(hash({dir_ / "c.txt", b}), both);
  // In a folder names are labels.
  dir_.write("d/x/1.txt", "t"), dir_.write("e/y/1.txt", "t"), dir_.write("f/x/1.txt", "t");
  EXPECT_NE(hash({dir_ / "d"}), hash({dir_ / "e"}));
  EXPECT_EQ(hash({dir_ / "d"}), hash({dir_ / "f"}));
}

TEST_F(SourceHashTest, FilesThatAreAsTheyWereAreNotReadAgain) {
  const auto a = dir_.write("a.txt", "one"), b = dir_.write("b.txt", "two");
  wait_until_settled();
  const uint64_t first = hash({a, b});
  EXPECT_EQ(n_read_, 6);
  EXPECT_EQ(hash({a, b}), first);
  EXPECT_EQ(n_read_, 0);
  // The same size and the same time of change, as far as a user can set it.
  const auto time = fs::last_write_time(b);
  dir_.write("b.txt", "twa");
  fs::last_write_time(b, time);
  EXPECT_NE(hash({a, b}), first);
  EXPECT_EQ(n_read_, 6) << "after the one that is known";
  dir_.write("b.txt", "two");
  EXPECT_EQ(hash({a, b}), first);
  // The record of what is known may be damaged, or gone.
  for (const auto& entry : fs::directory_iterator(known()))
    std::ofstream(entry.path()) << "{\"x\": [1, 2]";
  EXPECT_EQ(hash({a, b}), first);
  EXPECT_EQ(n_read_, 6);
}

TEST_F(SourceHashTest, AFileThatChangesIsNamed) {
  const auto a = dir_.write("a.txt", "one");
  const SourceFiles files(std::vector<fs::path>{a});
  EXPECT_NO_THROW(files.check_unchanged());
  dir_.write("a.txt", "other");
  EXPECT_THAT(error_of([&] { files.check_unchanged(); }),
              HasSubstr("a.txt' changed while it was read"));
}

}  // namespace
}  // namespace ferry
