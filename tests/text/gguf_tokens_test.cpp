// Tokenizers as GGUF files have them: which kind, which tokens and in what order they are merged;
// and what is refused since such a file cannot say it.

#include "src/text/spec/gguf_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/text/byte_letters.h"
#include "src/text/unicode/unicode.h"
#include "tests/text/model_files.h"
#include "tests/text/sentence_piece_bytes.h"

namespace ferry::test {
namespace {

using nlohmann::json;
using text::GgufTokens;
using text::read_gguf_tokens;
using TokenKind = text::GgufTokenKind;

std::string sentence_pieces(Algorithm algorithm, const std::string& normalizing = "") {
  std::string file =
      piece("<unk>", 0, unknown) + piece("<s>", 0, control) + piece("</s>", 0, control);
  for (int i = 0; i < 256; ++i)
    file += piece(fmt::format("<0x{:02X}>", i), 0, byte);
  float score = -1;
  for (const char* token : {"ab", "\u2581ab", "\u2581", "a", "b", "A"})
    file += piece(token, score--);
  return file + piece("[X]", 0, user_defined) + bytes(2, number(3, algorithm) + number(35, 1)) +
         bytes(3, bytes(1, "identity") + normalizing);
}

TEST(GgufTokens, PiecesKeepTheirScoresAndKinds) {
  TemporaryDirectory directory;
  directory.write("tokenizer.model", sentence_pieces(bpe));
  directory.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  const GgufTokens llama = read_gguf_tokens(directory.path());
  EXPECT_EQ(llama.model, "llama");
  EXPECT_EQ(llama.pre, "default");
  EXPECT_TRUE(llama.adds_blank);
  EXPECT_EQ(llama.tokens[259], "ab");
  EXPECT_EQ(llama.scores[259], -1);
  EXPECT_EQ(llama.scores[260], -2);
  EXPECT_EQ(llama.kinds[0], TokenKind::unknown);
  EXPECT_EQ(llama.kinds[2], TokenKind::control);
  EXPECT_EQ(llama.kinds[3], TokenKind::byte);
  EXPECT_EQ(llama.kinds[259], TokenKind::normal);
  EXPECT_EQ(llama.kinds[265], TokenKind::user_defined);
  EXPECT_EQ(llama.first, 1);
  EXPECT_EQ(llama.last, -1);
  EXPECT_EQ(llama.eos, 2);
  EXPECT_FALSE(llama.takes_blanks_after);

  directory.write("tokenizer_config.json",
                  R"({"tokenizer_class": "GemmaTokenizer", "add_eos_token": true})");
  const GgufTokens gemma = read_gguf_tokens(directory.path());
  EXPECT_FALSE(gemma.adds_blank);
  EXPECT_EQ(gemma.last, 2);
}

TEST(GgufTokens, PiecesThatItCannotSay) {
  TemporaryDirectory directory;
  directory.write("tokenizer.model", sentence_pieces(unigram));
  expect_error(Fault::data, {"tokenizer.model'", "Unigram", "--format hf"},
               [&] { read_gguf_tokens(directory.path()); });
  // Alone the file says that blanks side by side become one.
  directory.write("tokenizer.model", sentence_pieces(bpe));
  expect_error(Fault::data, {"of the text 'a  b'"}, [&] { read_gguf_tokens(directory.path()); });
  directory.write("tokenizer.model", sentence_pieces(bpe, number(4, 0)));
  EXPECT_TRUE(read_gguf_tokens(directory.path()).adds_blank);
}

/** vocab.json with merges.txt, of a class. */
void write_vocab_and_merges(const TemporaryDirectory& directory, const char* tokenizer_class) {
  json vocab;
  for (const char32_t letter : text::kByteLetters) {
    std::string token;
    text::append_utf8(token, letter);
    vocab[token] = vocab.size();
  }
  vocab["he"] = vocab.size();
  vocab["<|endoftext|>"] = vocab.size();
  directory.write("vocab.json", vocab.dump());
  directory.write("merges.txt", "#version: 0.2\nh e\r\n");
  directory.write("tokenizer_config.json", json{{"tokenizer_class", tokenizer_class}}.dump());
}

TEST(GgufTokens, VocabularyAndMerges) {
  TemporaryDirectory directory;
  write_vocab_and_merges(directory, "GPT2Tokenizer");
  const GgufTokens gpt2 = read_gguf_tokens(directory.path());
  EXPECT_EQ(gpt2.model, "gpt2");
  EXPECT_EQ(gpt2.pre, "gpt-2");
  EXPECT_EQ(gpt2.merges, std::vector<std::string>{"h e"});
  EXPECT_EQ(gpt2.eos, 257);
  EXPECT_EQ(gpt2.kinds[257], TokenKind::control);
  EXPECT_EQ(gpt2.first, -1);
  write_vocab_and_merges(directory, "Qwen2Tokenizer");
  EXPECT_EQ(read_gguf_tokens(directory.path()).pre, "qwen2");
}

TEST(GgufTokens, OtherTokenizersAreRefused) {
  TemporaryDirectory directory;
  expect_error(Fault::data, {"has no tokenizer"}, [&] { read_gguf_tokens(directory.path()); });
  directory.write("tokenizer.json", small_model().dump());
  expect_error(Fault::data, {"tokenizer.json'", "WordPiece", "--format hf"},
               [&] { read_gguf_tokens(directory.path()); });
}

}  // namespace
}  // namespace ferry::test
