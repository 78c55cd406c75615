// The text of tokens as they come.

#include "src/train/generate/token_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ferry {
namespace {

namespace fs = std::filesystem;

/** Byte-level tokens: "a", "b", "c", " d", and the three bytes of the euro sign by themselves. */
constexpr const char* kTokenizer = R"({"model": {"type": "BPE",
  "vocab": {"a": 0, "b": 1, "c": 2, "Ġd": 3, "â": 4, "Ĥ": 5, "¬": 6}, "merges": []},
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
  "decoder": {"type": "ByteLevel"}, "added_tokens": []})";

class TokenTextTest : public testing::Test {
 protected:
  TokenTextTest() {
    char name[] = "/tmp/ferry_token_text_XXXXXX";
    directory_ = mkdtemp(name);
    std::ofstream(directory_ / "tokenizer.json") << kTokenizer;
  }
  ~TokenTextTest() override { fs::remove_all(directory_); }

  fs::path directory_;
};

TEST_F(TokenTextTest, AWordKeepsTheSpaceBeforeIt) {
  const Tokenizer tokenizer = Tokenizer::open(directory_);
  const int32_t prompt[] = {0};
  TokenText text(tokenizer, prompt, {});
  EXPECT_EQ(text.add(3), " d");
  EXPECT_EQ(text.add(0), "a");
  EXPECT_EQ(text.finish(), "");
  EXPECT_EQ(text.text(), " da");
}

TEST_F(TokenTextTest, ACharacterComesWhole) {
  const Tokenizer tokenizer = Tokenizer::open(directory_);
  const int32_t prompt[] = {0};
  TokenText text(tokenizer, prompt, {});
  EXPECT_EQ(text.add(4), "");
  EXPECT_EQ(text.add(5), "");
  EXPECT_EQ(text.add(6), "€");
  EXPECT_EQ(text.add(1), "b");
}

TEST_F(TokenTextTest, WhatIsLeftOfACharacterComesAtTheEnd) {
  const Tokenizer tokenizer = Tokenizer::open(directory_);
  const int32_t prompt[] = {0};
  TokenText text(tokenizer, prompt, {});
  EXPECT_EQ(text.add(1), "b");
  EXPECT_EQ(text.add(4), "");
  EXPECT_EQ(text.finish(), "\xEF\xBF\xBD");
}

TEST_F(TokenTextTest, AStopStringIsLeftOut) {
  const Tokenizer tokenizer = Tokenizer::open(directory_);
  const int32_t prompt[] = {0};
  TokenText text(tokenizer, prompt, {"bc"});
  EXPECT_EQ(text.add(1), "");  // it may become one
  EXPECT_EQ(text.add(0), "ba");
  EXPECT_EQ(text.add(1), "");
  EXPECT_EQ(text.add(1), "b");
  EXPECT_FALSE(text.is_stopped());
  EXPECT_EQ(text.add(2), "");
  EXPECT_TRUE(text.is_stopped());
  EXPECT_EQ(text.finish(), "");
  EXPECT_EQ(text.text(), "bab");
}

TEST_F(TokenTextTest, WhatLooksLikeAStopStringComesAtTheEnd) {
  const Tokenizer tokenizer = Tokenizer::open(directory_);
  const int32_t prompt[] = {0};
  TokenText text(tokenizer, prompt, {"bcc"});
  EXPECT_EQ(text.add(1), "");
  EXPECT_EQ(text.add(2), "");
  EXPECT_EQ(text.finish(), "bc");
}

}  // namespace
}  // namespace ferry
