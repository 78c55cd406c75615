// Byte-pair encoding on a small vocabulary: which merges are made, in which order, and what becomes
// of what is not in the vocabulary. The pre-tokenizer, decoder and post-processor that go with it.

#include <random>
#include <set>

#include "src/text/byte_letters.h"
#include "src/text/models/bpe.h"
#include "tests/text/model_files.h"

namespace ferry::test {
namespace {

using nlohmann::json;
using text::Bpe;
using text::BpeOptions;
using TextPairs = std::vector<std::pair<std::string, std::string>>;

/** A tokenizer.json of byte pairs over some letters and joined tokens. */
json bpe_model(const std::vector<std::string>& tokens, const json& merges) {
  json vocab = json::object();
  for (const std::string& token : tokens)
    vocab[token] = vocab.size();
  return {{"version", "1.0"},
          {"added_tokens", json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", nullptr},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", vocab},
            {"merges", merges}}}};
}

TEST(Bpe, MergesByRankAndFromTheLeft) {
  const json model = bpe_model({"a", "b", "c", "ab", "bc", "abc", "aa", "aaa"},
                               {"b c", "a b", "a a", "aa a", "ab c"});
  const Tokenizer t = open_model(model);
  EXPECT_EQ(tokens_of(t, "abc"), "a bc");  // though abc is a token
  EXPECT_EQ(tokens_of(t, "aaaaa"), "aa aaa");
  EXPECT_EQ(tokens_of(t, "aab"), "a ab");
  EXPECT_EQ(tokens_of(t, "bab"), "b ab");
  json whole = model;
  whole["model"]["ignore_merges"] = true;
  EXPECT_EQ(tokens_of(open_model(whole), "abc"), "abc");
  json pairs = model;
  pairs["model"]["merges"] =
      json::parse(R"([["b", "c"], ["a", "b"], ["a", "a"], ["aa", "a"], ["ab", "c"]])");
  EXPECT_EQ(tokens_of(open_model(pairs), "aaaaab"), tokens_of(t, "aaaaab"));
}

/** Merging as its definition says it. */
std::vector<std::string> merged(std::vector<std::string> symbols, const TextPairs& merges) {
  for (const auto& [left, right] :
       merges) {  // of ranks that only rise when what they need is there
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (symbols[i] != left || symbols[i + 1] != right) continue;
      symbols[i] += right;
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }
  return symbols;
}

/** `never`: no token holds these two characters in a row. */
void expect_as_defined(const std::vector<std::string>& characters, const std::string& never) {
  // Every merge is of tokens that earlier merges made, so going through the ranks once is enough.
  std::mt19937 random(5);
  std::vector<std::string> vocabulary = characters;
  std::set<std::string> seen(vocabulary.begin(), vocabulary.end());
  TextPairs merges;
  while (merges.size() < 40) {
    const std::string left = vocabulary[random() % vocabulary.size()];
    const std::string right = vocabulary[random() % vocabulary.size()];
    if ((left + right).find(never) != std::string::npos) continue;
    if (!seen.insert(left + right).second) continue;
    vocabulary.push_back(left + right);
    merges.emplace_back(left, right);
  }
  const text::TokenPairs pairs(merges.begin(), merges.end());
  const Bpe model({}, vocabulary, text::find_merges(vocabulary, pairs, ""));
  for (int i = 0; i < 300; ++i) {
    std::string piece;
    std::vector<std::string> symbols;
    for (unsigned n = 1 + random() % (i % 3 ? 40 : 400); n > 0; --n)
      piece += symbols.emplace_back(characters[random() % characters.size()]);
    text::Pieces pieces;
    pieces.text.assign(piece, 0, true);
    pieces.start();
    std::vector<int32_t> ids;
    std::vector<text::Span> spans;
    model.encode(pieces, SIZE_MAX, {ids, &spans});
    std::vector<std::string> found;
    size_t at = 0;
    for (size_t k = 0; k < ids.size(); ++k) {
      found.push_back(vocabulary[static_cast<size_t>(ids[k])]);
      EXPECT_EQ(spans[k], text::span_of(at, at + found.back().size()));
      at = spans[k].end;
    }
    ASSERT_EQ(found, merged(symbols, merges)) << piece;
  }
}

TEST(Bpe, LongAndShortPiecesAsDefined) {
  expect_as_defined({"a", "b", "c"}, "none");
}

/** Words are pieces of their own only where no token goes from one to the next. */
TEST(Bpe, WordsAndTokensThatHoldABlank) {
  expect_as_defined({"a", "é", "\u2581"}, "a\u2581");
  expect_as_defined({"a", "é", "\u2581"}, "é\u2581");
  expect_as_defined({"a", "é", "\u2581"}, "none");
}

TEST(Bpe, UnknownCharacters) {
  json model = bpe_model({"a", "b", "<unk>", "ab", "<0xC3>", "<0xA9>"}, {"a b"});
  EXPECT_EQ(tokens_of(open_model(model), "abxéab"), "ab ab");
  model["model"]["unk_token"] = "<unk>";
  EXPECT_EQ(tokens_of(open_model(model), "abxéab"), "ab <unk> <unk> ab");
  model["model"]["fuse_unk"] = true;
  EXPECT_EQ(tokens_of(open_model(model), "abxéab"), "ab <unk> ab");
  Encoding e;
  open_model(model).encode("axéb", 9, e, Offsets::keep);
  EXPECT_EQ(e.offsets, (std::vector<text::Span>{{0, 1}, {1, 4}, {4, 5}}));
  model["model"]["byte_fallback"] = true;
  EXPECT_EQ(tokens_of(open_model(model), "aéb"), "a <0xC3> <0xA9> b");
  EXPECT_EQ(tokens_of(open_model(model), "aèb"), "a <unk> b");
  open_model(model).encode("é", 9, e, Offsets::keep);
  EXPECT_EQ(e.offsets, (std::vector<text::Span>{{0, 2}, {0, 2}}));
}

TEST(Bpe, PrefixesAndSuffixes) {
  json model = bpe_model({"a", "b", "##a", "##b", "ab", "b</w>", "ab</w>"}, {"a ##b"});
  model["model"]["continuing_subword_prefix"] = "##";
  EXPECT_EQ(tokens_of(open_model(model), "abb"), "ab ##b");
  model["model"]["continuing_subword_prefix"] = "";
  model["model"]["end_of_word_suffix"] = "</w>";
  model["model"]["merges"] = {"a b</w>"};
  EXPECT_EQ(tokens_of(open_model(model), "abab"), "a b ab</w>");
}

/** The letters of all bytes, some words, and the stages of GPT-2. */
json byte_level_model() {
  std::vector<std::string> tokens;
  for (unsigned byte = 0; byte < 256; ++byte) {
    tokens.emplace_back();
    text::append_utf8(tokens.back(), text::kByteLetters[byte]);
  }
  for (const char* token : {"he", "ll", "hell", "hello", "Ġhello", "Ã©", "<s>", "</s>"})
    tokens.emplace_back(token);
  json model = bpe_model(tokens, {"h e", "l l", "he ll", "hell o", "Ġ hello", "Ã ©"});
  model["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  model["post_processor"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}};
  model["decoder"] = {{"type", "ByteLevel"}};
  return model;
}

TEST(ByteLevel, BytesAndBack) {
  const Tokenizer t = open_model(byte_level_model());
  EXPECT_EQ(tokens_of(t, "hello hello  hé\n"), "hello Ġhello Ġ Ġ h Ã© Ċ");
  std::vector<int32_t> ids;
  t.append_ids("hello  日本\u0000é", ids);
  EXPECT_EQ(t.decode(ids), "hello  日本\u0000é");
  EXPECT_EQ(t.decode(std::span(ids).first(4)), "hello  \uFFFD");  // a character that is cut
  EXPECT_EQ(t.decode(std::vector<int32_t>{0xE6, 0x97, 'a', 0x80, 0xF0, 0x9F, 0xFF}),
            "\uFFFDa\uFFFD\uFFFD\uFFFD");
}

TEST(ByteLevel, OffsetsAndPrefixSpace) {
  json model = byte_level_model();
  Encoding e;
  open_model(model).encode("hello hello é", 99, e, Offsets::keep);
  EXPECT_EQ(e.offsets, (std::vector<text::Span>{{0, 5}, {5, 11}, {11, 12}, {12, 14}}));
  model["post_processor"]["trim_offsets"] = true;
  model["pre_tokenizer"]["add_prefix_space"] = true;
  const Tokenizer t = open_model(model);
  EXPECT_EQ(tokens_of(t, "hello"), "Ġhello");
  EXPECT_EQ(tokens_of(t, " hello"), "Ġhello");
  t.encode("hello hello", 99, e, Offsets::keep);
  EXPECT_EQ(e.offsets, (std::vector<text::Span>{{0, 5}, {6, 11}}));
  t.encode("hello 日", 99, e, Offsets::keep);
  EXPECT_EQ(e.offsets, (std::vector<text::Span>{{0, 5}, {6, 6}, {6, 9}, {6, 9}, {6, 9}}));
}

/** As `tokenizers` has them: what lies behind a dropped byte is said to lie too early. */
TEST(ByteLevel, OffsetsBehindAByteThatTheVocabularyLacks) {
  json model = byte_level_model();
  json& vocabulary = model["model"]["vocab"];
  vocabulary["<gap>"] = vocabulary["ñ"];
  vocabulary.erase("ñ");
  Encoding e;
  open_model(model).encode("\U00040000&$\U00040000!", 99, e, Offsets::keep);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{0x80, 0x80, 0x80, '&', '$', 0x80, 0x80, 0x80, '!'}));
  EXPECT_EQ(e.offsets,
            (std::vector<text::Span>{
                {0, 4}, {0, 4}, {0, 4}, {0, 4}, {0, 4}, {4, 6}, {6, 10}, {6, 10}, {6, 10}}));
}

TEST(ByteLevel, RobertaPutsFourTokensAroundAPair) {
  json model = byte_level_model();
  model["post_processor"] = {{"type", "RobertaProcessing"},
                             {"sep", {"</s>", 263}},
                             {"cls", {"<s>", 262}},
                             {"trim_offsets", true},
                             {"add_prefix_space", true}};
  const Tokenizer t = open_model(model);
  EXPECT_EQ(t.n_added_pair(), 4);
  Encoding e;
  t.encode_pair("hello", "hello", 99, e, Offsets::keep);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{262, 259, 263, 263, 259, 263}));
  EXPECT_EQ(e.type_ids, std::vector<int32_t>(6, 0));
  EXPECT_EQ(e.texts, (std::vector<int8_t>{-1, 0, -1, -1, 1, -1}));
  model["post_processor"] = {{"type", "Sequence"},
                             {"processors", {model["post_processor"], model["post_processor"]}}};
  expect_error(Fault::data, {"post_processor.processors[1]", "expected one"},
               [&] { open_model(model); });
}

TEST(ByteLevel, CutsAtAPattern) {
  json model = byte_level_model();
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", "l+"}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto tokens = [&](const char* behavior, bool invert) {
    json cut = split;
    cut["behavior"] = behavior;
    cut["invert"] = invert;
    model["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {cut, bytes}}};
    return tokens_of(open_model(model), "hellohe");
  };
  EXPECT_EQ(tokens("Isolated", false), "he ll o he");
  EXPECT_EQ(tokens("Removed", false), "he o he");
  EXPECT_EQ(tokens("Removed", true), "ll");
  EXPECT_EQ(tokens("MergedWithPrevious", false), "hell o he");
  EXPECT_EQ(tokens("MergedWithNext", false), "he ll o he");
  model["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {bytes, split}}};
  expect_error(Fault::data, {"pre_tokenizer.pretokenizers[1]", "has to be the last"},
               [&] { open_model(model); });
  json unknown = split;
  unknown["pattern"]["Regex"] = "(?<=a)b";
  model["pre_tokenizer"] = unknown;
  expect_error(Fault::data, {"tokenizer.json'", "pre_tokenizer.pattern.Regex", "(?<=a)b", "byte 1"},
               [&] { open_model(model); });
}

TEST(Bpe, FilesThatAreWrong) {
  const auto refused = [](const json& model, const std::vector<std::string>& parts) {
    std::vector<std::string> all = parts;
    all.push_back("tokenizer.json'");
    expect_error(Fault::data, all, [&] { open_model(model); });
  };
  const json good = bpe_model({"a", "b", "ab"}, {"a b"});
  for (const char* merge : {"ab", "a b c", "a  b"}) {
    json model = good;
    model["model"]["merges"] = {merge};
    refused(model, {"model.merges[0]", "two tokens"});
  }
  json model = good;
  model["model"]["merges"] = {"b a"};
  refused(model, {"merge 0", "needs the token 'ba'"});
  model["model"]["merges"] = json::parse(R"([["a", "b", "c"]])");
  refused(model, {"model.merges[0] is no pair"});
  model["model"]["merges"] = {3};
  refused(model, {"model.merges[0] is 3"});
  model = good;
  model["model"]["unk_token"] = "<unk>";
  refused(model, {"no unknown token '<unk>'"});
  model = good;
  model["model"]["dropout"] = 0.1;
  refused(model, {"model.dropout"});
  model = good;
  model["model"].erase("merges");
  refused(model, {"model.merges is missing"});
}

TEST(VocabMerges, ByTheNameOfTheClass) {
  TemporaryDirectory directory;
  const json model = byte_level_model();
  std::string merges = "#version: 0.2\n";
  for (const json& merge : model["model"]["merges"])
    merges += merge.get<std::string>() + "\n";
  directory.write("vocab.json", model["model"]["vocab"].dump());
  directory.write("merges.txt", merges);
  expect_error(Fault::data, {"vocab.json'", "not known"},
               [&] { Tokenizer::open(directory.path()); });
  directory.write("config.json", R"({"model_type": "gpt2"})");
  EXPECT_EQ(tokens_of(Tokenizer::open(directory.path()), "hello hello"), "hello Ġhello");

  directory.write("tokenizer_config.json",
                  R"({"tokenizer_class": "GPT2Tokenizer", "bos_token": "<s>",
                                               "add_bos_token": true, "add_prefix_space": true})");
  Encoding e;
  Tokenizer::open(directory.path()).encode_pair("hello", "hello", 9, e);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{262, 260, 262, 260}));
  EXPECT_EQ(e.type_ids, (std::vector<int32_t>{0, 0, 1, 1}));

  directory.write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizerFast"})");
  const Tokenizer roberta = Tokenizer::open(directory.path());
  roberta.encode("hello</s>", 9, e);
  EXPECT_EQ(e.ids, (std::vector<int32_t>{262, 259, 263, 263}));
  EXPECT_EQ(roberta.decode(e.ids), "hello");
  EXPECT_EQ(roberta.special_ids().cls, 262);
  EXPECT_EQ(roberta.special_ids().mask, -1);

  directory.write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_EQ(tokens_of(Tokenizer::open(directory.path()), "hello e\u0301"), "hello Ġ Ã©");

  directory.write("tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  expect_error(Fault::data, {"CLIPTokenizer"}, [&] { Tokenizer::open(directory.path()); });
  directory.write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  directory.write("merges.txt", "#version: 0.2\nh e\nhello\n");
  expect_error(Fault::data, {"merges.txt'", "line 3"}, [&] { Tokenizer::open(directory.path()); });
}

}  // namespace
}  // namespace ferry::test
