// The tokenizer on a small vocabulary: what each rule does, by hand. That it equals Hugging Face's
// everywhere is compare_tokenizers.py's to show.

#include "src/text/tokenizer.h"

#include <thread>

#include "tests/text/model_files.h"

namespace ferry::test {
namespace {

using Ids = std::vector<int32_t>;
using namespace std::string_literals;

TEST(Tokenizer, CutsWordsIntoTheLongestPieces) {
  const Tokenizer t = open_model(small_model());
  EXPECT_EQ(tokens_of(t, "Hello, unaffable worlds!"), "hello , un ##aff ##able world ##s !");
  EXPECT_EQ(tokens_of(t, "unaffx the"), "[UNK] the");
  EXPECT_EQ(tokens_of(t, "aaaaaaaaaa aaaaaaaaaaa a"),
            "a ##a ##a ##a ##a ##a ##a ##a ##a ##a [UNK] a");  // 10 characters a word at most
  EXPECT_EQ(tokens_of(t, ""), "");
  EXPECT_EQ(tokens_of(t, " \t\r\n\u00a0\u3000"), "");
}

TEST(Tokenizer, CountsCharactersOfLongWordsAndNotBytes) {
  nlohmann::json model = small_model();
  model["normalizer"]["handle_chinese_chars"] = false;
  const Tokenizer t = open_model(model);
  EXPECT_EQ(tokens_of(t, "日本本本本本本本本本"),
            "日 ##本 ##本 ##本 ##本 ##本 ##本 ##本 ##本 ##本");
  EXPECT_EQ(tokens_of(t, "日本本本本本本本本本本"), "[UNK]");
}

TEST(Tokenizer, Normalizes) {
  const Tokenizer t = open_model(small_model());
  EXPECT_EQ(tokens_of(t, "CAFÉ cafe\u0301 c\u0301afé"), "cafe cafe cafe");
  EXPECT_EQ(tokens_of(t, "the日the"), "the 日 the");
  EXPECT_EQ(tokens_of(t, "日本"), "日 [UNK]");
  EXPECT_EQ(tokens_of(t, "he\u200bl\u0000lo\ufffd\u00ad"s), "hello");
  EXPECT_EQ(tokens_of(t, "hello\u2028the\u0085world"),
            "hello [UNK]");  // U+0085 is a control character: removed
  EXPECT_EQ(tokens_of(t, "İstanbul"), "istanbul");
}

TEST(Tokenizer, CasedKeepsCaseAndAccents) {
  nlohmann::json model = small_model();
  model["normalizer"]["lowercase"] = false;
  const Tokenizer t = open_model(model);
  EXPECT_EQ(tokens_of(t, "Hello hello HELLO"), "Hello hello [UNK]");
  EXPECT_EQ(tokens_of(t, "café cafe\u0301"), "café cafe ##\u0301");
}

TEST(Tokenizer, LowerCaseMayBeLonger) {
  nlohmann::json model = small_model();
  model["normalizer"]["strip_accents"] = false;
  EXPECT_EQ(tokens_of(open_model(model), "İ É"), "i ##\u0307 é");
}

TEST(Tokenizer, FindsAddedTokens) {
  const Tokenizer t = open_model(small_model());
  EXPECT_EQ(tokens_of(t, "hello[SEP]hello"), "hello [SEP] hello");
  EXPECT_EQ(tokens_of(t, "[sep] [[SEP]]"), "[ sep ] [ [SEP] ]");
  EXPECT_EQ(tokens_of(t, "[SE"), "[ [UNK]");
}

nlohmann::json added_token(int id, std::string_view content) {
  return {{"id", id},        {"content", content}, {"special", false},   {"single_word", false},
          {"lstrip", false}, {"rstrip", false},    {"normalized", false}};
}

TEST(Tokenizer, AddedTokensByFlags) {
  nlohmann::json model = small_model();
  const int n = static_cast<int>(kSmallVocabulary.size());
  nlohmann::json single = added_token(n, "single"), normal = added_token(n + 1, "NÖRM");
  nlohmann::json longer = added_token(n + 2, "single file");
  single["single_word"] = true;
  normal["normalized"] = true;
  for (const nlohmann::json& token : {single, normal, longer})
    model["added_tokens"].push_back(token);
  const Tokenizer t = open_model(model);
  EXPECT_EQ(t.vocab_size(), n + 3);
  EXPECT_EQ(t.id_to_token(n + 1), "NÖRM");
  EXPECT_EQ(t.token_to_id("single file"), n + 2);
  EXPECT_EQ(tokens_of(t, "hellonorm NÖRMhello"), "hello NÖRM NÖRM hello");
  EXPECT_EQ(tokens_of(t, "single singles _single -single-"),
            "single [UNK] [UNK] [UNK] [UNK] single [UNK]");
  EXPECT_EQ(tokens_of(t, "single file"), "single file");
}

TEST(Tokenizer, AddsSpecialTokensAndTypes) {
  const Tokenizer t = open_model(small_model());
  Encoding e;
  t.encode("hello world", Tokenizer::kNoLimit, e);
  EXPECT_EQ(e.ids, (Ids{2, 5, 6, 3}));
  EXPECT_EQ(e.type_ids, (Ids{0, 0, 0, 0}));
  t.encode_pair("hello", "world !", Tokenizer::kNoLimit, e);
  EXPECT_EQ(e.ids, (Ids{2, 5, 3, 6, 12, 3}));
  EXPECT_EQ(e.type_ids, (Ids{0, 0, 0, 1, 1, 1}));
  t.encode("", 128, e);
  EXPECT_EQ(e.ids, (Ids{2, 3}));
  EXPECT_EQ(t.n_added_single(), 2);
  EXPECT_EQ(t.n_added_pair(), 3);
}

TEST(Tokenizer, WithoutPostProcessorAddsNothing) {
  nlohmann::json model = small_model();
  model["post_processor"] = nullptr;
  const Tokenizer t = open_model(model);
  Encoding e;
  t.encode("hello world", 1, e);
  EXPECT_EQ(e.ids, (Ids{5}));
  t.encode_pair("hello", "world", 128, e);
  EXPECT_EQ(e.ids, (Ids{5, 6}));
  EXPECT_EQ(e.type_ids, (Ids{0, 1}));
}

TEST(Tokenizer, BertProcessingIsTheSameTemplate) {
  nlohmann::json model = small_model();
  model["post_processor"] = nlohmann::json::parse(
      R"({"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]})");
  const Tokenizer t = open_model(model);
  Encoding e;
  t.encode_pair("hello", "world !", 5, e);
  EXPECT_EQ(e.ids, (Ids{2, 5, 3, 6, 3}));
  EXPECT_EQ(e.type_ids, (Ids{0, 0, 0, 1, 1}));
}

TEST(Tokenizer, TruncatesASingleText) {
  const Tokenizer t = open_model(small_model());
  Encoding e;
  t.encode("hello unaffable world", 5, e);
  EXPECT_EQ(e.ids, (Ids{2, 5, 7, 8, 3}));  // within a word
  t.encode("hello [SEP] hello", 2, e);
  EXPECT_EQ(e.ids, (Ids{2, 3}));
  expect_error(Fault::usage, {"[tokenizer.encode]", "max_length 1", "2 special tokens"},
               [&] { t.encode("a", 1, e); });
  expect_error(Fault::usage, {"max_length -5"}, [&] { t.encode("a", -5, e); });
}

TEST(Tokenizer, TruncatesTheLongerTextFirst) {
  const Tokenizer t = open_model(small_model());
  const auto lengths = [&](int n_a, int n_b, int max_length) {
    std::string a, b;
    for (int i = 0; i < n_a; ++i)
      a += "hello ";
    for (int i = 0; i < n_b; ++i)
      b += "world ";
    Encoding e;
    t.encode_pair(a, b, max_length, e);
    return std::pair{std::count(e.ids.begin(), e.ids.end(), 5),
                     std::count(e.ids.begin(), e.ids.end(), 6)};
  };
  using Lengths = std::pair<std::ptrdiff_t, std::ptrdiff_t>;
  EXPECT_EQ(lengths(3, 4, 10), (Lengths{3, 4}));
  EXPECT_EQ(lengths(3, 10, 13), (Lengths{3, 7}));
  EXPECT_EQ(lengths(10, 3, 13), (Lengths{7, 3}));
  EXPECT_EQ(lengths(10, 10, 14), (Lengths{5, 6}));
  EXPECT_EQ(lengths(10, 9, 14), (Lengths{6, 5}));
  EXPECT_EQ(lengths(0, 9, 8), (Lengths{0, 5}));
  EXPECT_EQ(lengths(9, 9, 3), (Lengths{0, 0}));
}

TEST(Tokenizer, KnowsItsSpecialTokens) {
  nlohmann::json model = small_model();
  const SpecialIds ids = open_model(model).special_ids();
  EXPECT_EQ((Ids{ids.pad, ids.unk, ids.cls, ids.sep, ids.mask}), (Ids{0, 1, 2, 3, 4}));

  TemporaryDirectory directory;
  directory.write("tokenizer.json", model.dump());
  directory.write("tokenizer_config.json",
                  R"({"mask_token": {"content": "hello"}, "pad_token": "<none>"})");
  const SpecialIds named = Tokenizer::open(directory.path()).special_ids();
  EXPECT_EQ(named.mask, 5);
  EXPECT_EQ(named.pad, 30);  // added behind the vocabulary, as transformers does
}

TEST(Tokenizer, RefusesInvalidUtf8) {
  const Tokenizer t = open_model(small_model());
  Encoding e;
  expect_error(Fault::data, {"[tokenizer.encode]", "byte 6", "0xff"},
               [&] { t.encode("hello \xff the", 128, e); });
  expect_error(Fault::data, {"byte 1", "0xed"}, [&] { t.encode("a\xed\xa0\x80", 128, e); });
  // Also beyond what max_length keeps: a file is right or wrong whatever the length.
  expect_error(Fault::data, {"byte 12"}, [&] { t.encode("hello world \xc3", 3, e); });
  expect_error(Fault::data, {"byte 0"}, [&] { t.encode_pair("hello", "\x80", 128, e); });
}

using Spans = std::vector<text::Span>;

TEST(Tokenizer, SaysWhereTokensCameFrom) {
  const Tokenizer t = open_model(small_model());
  Encoding e;
  //         0      6         15 17  20    26
  t.encode("Hello, unaffable caf\u00e9 \u65e5[SEP]\u00ad !", Tokenizer::kNoLimit, e, Offsets::keep);
  EXPECT_EQ(e.ids, (Ids{2, 5, 11, 7, 8, 9, 14, 15, 3, 12, 3}));
  EXPECT_EQ(e.offsets, (Spans{{0, 0},
                              {0, 5},
                              {5, 6},
                              {7, 9},
                              {9, 12},
                              {12, 16},
                              {17, 22},
                              {23, 26},
                              {26, 31},
                              {34, 35},
                              {0, 0}}));
  EXPECT_EQ(e.texts, (std::vector<int8_t>{-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1}));
  t.encode_pair("hello", "\u00e9 the world", 6, e, Offsets::keep);
  EXPECT_EQ(e.offsets, (Spans{{0, 0}, {0, 5}, {0, 0}, {0, 2}, {3, 6}, {0, 0}}));
  EXPECT_EQ(e.texts, (std::vector<int8_t>{-1, 0, -1, 1, 1, -1}));
  t.encode("hello", 6, e);
  EXPECT_TRUE(e.offsets.empty() && e.texts.empty());
}

TEST(Tokenizer, LettersThatOneBecameShareItsBytes) {
  nlohmann::json model = small_model();
  model["normalizer"]["strip_accents"] = false;
  model["model"]["vocab"]["a\u0307"] = kSmallVocabulary.size();
  model["normalizer"]["lowercase"] = true;
  Encoding e;
  open_model(model).encode("A\u0307 \u0130", Tokenizer::kNoLimit, e, Offsets::keep);
  EXPECT_EQ(e.ids, (Ids{2, 30, 20, 21, 3}));
  EXPECT_EQ(e.offsets, (Spans{{0, 0}, {0, 3}, {4, 6}, {4, 6}, {0, 0}}));
}

TEST(Tokenizer, Decodes) {
  nlohmann::json model = small_model();
  const Ids ids = {2, 5, 11, 7, 8, 9, 12, 3, 999, -1, 0};
  EXPECT_EQ(open_model(model).decode(ids), "[CLS] hello, unaffable!");
  EXPECT_EQ(open_model(model).decode(ids, false), "[CLS] hello, unaffable! [SEP] [PAD]");
  model["decoder"]["cleanup"] = false;
  EXPECT_EQ(open_model(model).decode(ids), "[CLS] hello , unaffable !");
  EXPECT_EQ(open_model(model).decode({}), "");
}

TEST(Tokenizer, ThreadsShareIt) {
  const Tokenizer t = open_model(small_model());
  Encoding expected;
  t.encode_pair("hello unaffable café", "日 [MASK] world", 9, expected);
  std::vector<int> n_equal(4, 0);
  {
    std::vector<std::jthread> threads;
    for (int& count : n_equal)
      threads.emplace_back([&] {
        Encoding e;
        for (int i = 0; i < 500; ++i) {
          t.encode_pair("hello unaffable café", "日 [MASK] world", 9, e);
          count += e.ids == expected.ids && e.type_ids == expected.type_ids;
        }
      });
  }
  EXPECT_EQ(n_equal, (std::vector<int>(4, 500)));
}

}  // namespace
}  // namespace ferry::test
