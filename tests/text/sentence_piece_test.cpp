// Tokenizers made of SentencePiece's .model files and of files of ranks: the forms that go with the
// classes of tokenizers, special tokens, and files that are damaged or of another kind.

#include <random>

#include "tests/text/model_files.h"
#include "tests/text/sentence_piece_bytes.h"

namespace ferry::test {
namespace {

using nlohmann::json;

/** A small model: "training" and "normalizing" are fields beyond those of the algorithm. */
std::string model_file(Algorithm algorithm,
                       const std::string& training = "",
                       const std::string& normalizing = "") {
  std::string file = piece("<unk>", 0, unknown) + piece("<s>", 0, control) +
                     piece("</s>", 0, control) + piece("[X]", 0, user_defined);
  float score = -1;
  for (const char* text : {"ab", "▁ab", "abc", "▁", "a", "b", "c", "d"})
    file += piece(text, score--);
  for (const char* text : {"<0xC3>", "<0xA9>"})
    file += piece(text, 0, byte);
  return file + bytes(2, number(3, algorithm) + number(35, 1) + training + bytes(99, "later")) +
         bytes(3, bytes(1, "identity") + normalizing);
}

const std::string kAsItIs = number(3, 0) + number(4, 0);  // no blank in front, none removed

TEST(SentencePiece, AloneAsItSaysItself) {
  TemporaryDirectory directory;
  directory.write("tokenizer.model", model_file(bpe, "", kAsItIs));
  EXPECT_TRUE(Tokenizer::is_in(directory.path()));
  const Tokenizer plain = Tokenizer::open(directory.path());
  EXPECT_EQ(plain.vocab_size(), 14);
  EXPECT_EQ(tokens_of(plain, "abc  ab"), "abc ▁ ▁ab");
  EXPECT_EQ(tokens_of(plain, "a[X]é</s>è"), "a [X] <0xC3> <0xA9> </s> <unk>");
  std::vector<int32_t> ids;
  plain.append_ids("ab [X]é", ids);
  EXPECT_EQ(plain.decode(ids), "ab [X]é");

  directory.write("tokenizer.model", model_file(bpe));
  const Tokenizer trimmed = Tokenizer::open(directory.path());
  EXPECT_EQ(tokens_of(trimmed, " abc  ab "), "▁ab c ▁ab");
  Encoding e;
  trimmed.encode("ab", 9, e);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{5}));
}

TEST(SentencePiece, ABlankBeginsAUsersSymbol) {
  TemporaryDirectory directory;
  directory.write("tokenizer.model",
                  model_file(bpe) + piece("▁a", 0, user_defined) + piece("b▁", 0, user_defined));
  const Tokenizer t = Tokenizer::open(directory.path());
  Encoding e;
  t.encode("ab  ab c", 9, e, Offsets::keep);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{14, 15, 8, 15, 10}));  // ▁a b▁ a b▁ c
  EXPECT_EQ(e.offsets, (std::vector<text::Span>{{0, 1}, {1, 4}, {4, 5}, {5, 7}, {7, 8}}));
  EXPECT_EQ(t.decode(e.ids), "ab ab c");
  directory.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  EXPECT_EQ(tokens_of(Tokenizer::open(directory.path()), "ab ab"), "▁ab ▁ab");
}

TEST(SentencePiece, TheHigherScoreIsMergedFirst) {
  TemporaryDirectory directory;
  directory.write("tokenizer.model", model_file(bpe, "", kAsItIs) + piece("bcd", -0.1f) +
                                         piece("cd", -0.2f) + piece("▁▁", -1e9f) +
                                         piece("▁▁▁", -0.3f));
  const Tokenizer t = Tokenizer::open(directory.path());
  EXPECT_EQ(tokens_of(t, "abcd"), "a bcd");
  EXPECT_EQ(tokens_of(t, "   ab"), "▁▁ ▁ab");
  directory.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  EXPECT_EQ(tokens_of(Tokenizer::open(directory.path()), "abcd"), "▁ a bcd");
}

TEST(SentencePiece, LlamaPutsABeginningAndABlank) {
  TemporaryDirectory directory;
  directory.write("tokenizer.model", model_file(bpe));
  directory.write("config.json", R"({"model_type": "mistral"})");
  Encoding e;
  const Tokenizer by_type = Tokenizer::open(directory.path());
  by_type.encode("ab  ab", 9, e, Offsets::keep);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{1, 5, 7, 5}));
  EXPECT_EQ(e.offsets, (std::vector<text::Span>{{0, 0}, {0, 2}, {2, 3}, {3, 6}}));
  EXPECT_EQ(by_type.decode(e.ids), "ab  ab");
  EXPECT_EQ(by_type.special_ids().eos, 2);

  directory.write(
      "tokenizer_config.json",
      R"({"tokenizer_class": "LlamaTokenizerFast", "legacy": false, "add_bos_token": false,
                      "add_eos_token": true})");
  const Tokenizer newer = Tokenizer::open(directory.path());
  newer.encode("ab[X]ab", 9, e);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{5, 3, 4, 2}));
  directory.write("tokenizer_config.json", R"({"tokenizer_class": "GemmaTokenizer"})");
  EXPECT_EQ(tokens_of(Tokenizer::open(directory.path()), "ab ab"), "ab ▁ab");
}

TEST(SentencePiece, T5AndXlmRobertaNumberAnew) {
  TemporaryDirectory directory;
  directory.write("spiece.model", model_file(unigram));
  directory.write("tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 3})");
  const Tokenizer t5 = Tokenizer::open(directory.path());
  EXPECT_EQ(t5.vocab_size(), 17);
  EXPECT_EQ(t5.id_to_token(14), "<extra_id_2>");
  Encoding e;
  t5.encode("ab<extra_id_0> q", 9, e);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{5, 16, 7, 0, 2}));
  t5.encode_pair("ab", "ab", 9, e);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{5, 2, 5, 2}));
  EXPECT_EQ(e.type_ids, std::vector<int32_t>(4, 0));

  directory.write("tokenizer_config.json", R"({"tokenizer_class": "XLMRobertaTokenizer"})");
  const Tokenizer roberta = Tokenizer::open(directory.path());
  EXPECT_EQ(roberta.vocab_size(), 16);
  EXPECT_EQ(roberta.special_ids().mask, 15);
  EXPECT_EQ(roberta.special_ids().pad, 1);
  roberta.encode_pair("ab q", "ab", 9, e);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{0, 6, 8, 3, 2, 2, 6, 2}));
}

TEST(SentencePiece, ClassesThatAreNotKnown) {
  TemporaryDirectory directory;
  directory.write("tokenizer.model", model_file(bpe));
  directory.write("config.json", R"({"model_type": "bert"})");
  expect_error(Fault::data, {"tokenizer.model'", "model of type 'bert'", "not known"},
               [&] { Tokenizer::open(directory.path()); });
  directory.write("tokenizer_config.json", R"({"tokenizer_class": "XLNetTokenizer"})");
  expect_error(Fault::data, {"XLNetTokenizer, which is not known"},
               [&] { Tokenizer::open(directory.path()); });
}

TEST(SentencePiece, FilesThatAreWrong) {
  TemporaryDirectory directory;
  const auto refused = [&](const std::string& file, const std::vector<std::string>& parts) {
    directory.write("tokenizer.model", file);
    std::vector<std::string> all = parts;
    all.push_back("tokenizer.model': as a SentencePiece model ");
    expect_error(Fault::data, all, [&] { Tokenizer::open(directory.path()); });
  };
  const std::string good = model_file(bpe);
  refused("", {"has no pieces"});
  refused(bytes(2, number(3, 3)), {"is a model of type WORD, supported are UNIGRAM and BPE"});
  refused(bytes(2, number(3, 4)), {"type CHAR"});
  refused(good + piece("ab", 0), {"has the piece 'ab' twice"});
  refused(good + piece("", 0), {"empty piece, id 14"});
  refused(good + piece("\xff", 0), {"not UTF-8, id 14"});
  refused(good + piece("new", std::numeric_limits<float>::quiet_NaN()), {"without a score"});
  refused(good + bytes(1, number(3, 7)), {"a piece of kind 7"});
  refused(good + bytes(2, number(40, 99)), {"has the unknown id 99, but 14 pieces"});
  refused(good + bytes(2, number(24, 1)), {"blanks behind words"});
  refused(good + bytes(3, number(5, 0)), {"leaves blanks as they are"});
  refused(good + "\x0b", {"wire type 3"});
  refused(good + bytes(1, bytes(2, "abcd")), {"has field 2 with wire type 2, expected 5"});
  refused(good + std::string(11, '\xff'), {"more than ten bytes"});
  refused(good + "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", {"ends", "before field 1 does"});

  directory.write("tokenizer.model", model_file(bpe, "", bytes(2, "abcd")));
  expect_error(Fault::data, {"its map of characters says"},
               [&] { Tokenizer::open(directory.path()); });
}

TEST(SentencePiece, DamagedAnywhereOpensOrIsRefused) {
  TemporaryDirectory directory;
  std::mt19937 random(7);
  for (const std::string& whole : {model_file(bpe), model_file(unigram)}) {
    int n_refused = 0;
    for (int i = 0; i < 600; ++i) {
      std::string damaged = whole;
      if (i % 3 == 0) damaged.resize(random() % damaged.size());
      for (unsigned n = 1 + random() % 3; n > 0 && !damaged.empty(); --n)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      directory.write("tokenizer.model", damaged);
      try {
        Encoding e;
        Tokenizer::open(directory.path()).encode("ab [X]é 日本 abc", 64, e, Offsets::keep);
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::data) << error.what();
        ++n_refused;
      }
    }
    EXPECT_GT(n_refused, 100);
  }
}

/** The tokens "a", "b", " ", "ab", "é", " ab". */
std::string rank_lines() {
  return "YQ== 0\nYg== 1\nIA== 2\nYWI= 3\nw6k= 4\nIGFi 5\n";
}

TEST(Ranks, OfTiktoken) {
  TemporaryDirectory directory;
  EXPECT_FALSE(Tokenizer::is_in(directory.path()));
  directory.write("some.tiktoken", rank_lines());
  EXPECT_TRUE(Tokenizer::is_in(directory.path()));
  const Tokenizer t = Tokenizer::open(directory.path());
  EXPECT_EQ(t.vocab_size(), 6);
  EXPECT_EQ(tokens_of(t, "ab abba é"), "ab Ġab b a Ġ");
  std::vector<int32_t> ids = {3, 5, 2, 4};
  EXPECT_EQ(t.decode(ids), "ab ab é");

  directory.write("tokenizer_config.json",
                  R"({"added_tokens_decoder": {"8": {"content": "<end>", "special": true}}})");
  const Tokenizer added = Tokenizer::open(directory.path());
  EXPECT_EQ(added.vocab_size(), 9);
  EXPECT_EQ(added.id_to_token(6), "<|reserved_token_6|>");
  EXPECT_EQ(tokens_of(added, "ab<end>a"), "ab <end> a");

  std::filesystem::remove(directory.path() / "some.tiktoken");
  directory.write("tokenizer.model", rank_lines());  // as Llama 3 comes
  EXPECT_EQ(Tokenizer::open(directory.path()).vocab_size(), 9);
}

TEST(Ranks, OfWhisperHaveATokenWithoutBytes) {
  TemporaryDirectory directory;
  directory.write("multilingual.tiktoken", rank_lines() + "= 6\n");
  const Tokenizer t = Tokenizer::open(directory.path());
  EXPECT_EQ(t.vocab_size(), 7);
  EXPECT_EQ(tokens_of(t, "ab abba é"), "ab Ġab b a Ġ");
  EXPECT_EQ(t.decode(std::vector<int32_t>{3, 6, 5}), "ab ab");
  EXPECT_EQ(t.special_ids().cls, -1);
}

TEST(Ranks, OfTiktokenThatAreWrong) {
  TemporaryDirectory directory;
  const auto refused = [&](const std::string& lines, const std::vector<std::string>& parts) {
    directory.write("some.tiktoken", lines);
    expect_error(Fault::data, parts, [&] { Tokenizer::open(directory.path()); });
  };
  refused("", {"some.tiktoken'", "has no tokens"});
  refused("YQ== 0\nYg==\n", {"line 2 is 'Yg=='", "token in base64 and its rank"});
  refused("YQ== 0\nYg== x\n", {"line 2"});
  refused("YQ== 0\nY 1\n", {"line 2"});
  refused("YQ== 0\nYg== 0\n", {"gives the rank 0 twice"});
  refused("YQ== 0\n= 0\n", {"gives the rank 0 twice"});
  refused("YQ== 0\nYg== 2\n", {"gives the rank 2 beyond"});
  refused("YQ== 0\nYQ== 1\n", {"has the token 'a' twice"});
}

TEST(Ranks, OfTekken) {
  json file = {{"config", {{"pattern", " ?\\p{L}+|\\s+"}, {"default_num_special_tokens", 22}}},
               {"vocab", json::array()}};
  int rank = 0;
  for (const char* token : {"YQ==", "Yg==", "IA==", "YWI=", "IGFi"})
    file["vocab"].push_back({{"rank", rank++}, {"token_bytes", token}, {"token_str", nullptr}});
  TemporaryDirectory directory;
  const auto open = [&](const json& content) {
    directory.write("tekken.json", content.dump());
    return Tokenizer::open(directory.path());
  };
  const Tokenizer t = open(file);
  EXPECT_EQ(t.vocab_size(), 27);
  EXPECT_EQ(t.special_ids().bos, 1);
  EXPECT_EQ(t.id_to_token(21), "<SPECIAL_21>");
  EXPECT_EQ(tokens_of(t, "<s>ab[INST] abb"), "<s> ab [INST] Ġab b");
  file["config"]["default_vocab_size"] = 26;  // padded behind
  EXPECT_EQ(open(file).vocab_size(), 26);
  file["special_tokens"] = {{{"rank", 1}, {"token_str", "<s>"}}, {{"rank", 0}, {"token_str", "?"}}};
  file["config"]["default_num_special_tokens"] = 2;
  EXPECT_EQ(open(file).special_ids().bos, 1);
  file["special_tokens"][0]["rank"] = 0;
  expect_error(Fault::data, {"tekken.json'", "special_tokens[1] has the rank 0 again"},
               [&] { open(file); });
  file.erase("special_tokens");
  file["config"]["default_num_special_tokens"] = 20;
  file["vocab"][1]["token_bytes"] = "?";
  expect_error(Fault::data, {"vocab[1].token_bytes", "no token in base64"}, [&] { open(file); });
  file["vocab"][1]["token_bytes"] = "Yg==";
  file["config"]["pattern"] = "(";
  expect_error(Fault::data, {"tekken.json'", "has the pattern ("}, [&] { open(file); });
}

}  // namespace
}  // namespace ferry::test
