// Texts that are cut have the tokens of whole ones, with tokenizers that put something in front of
// every text, look across words or know no words. Real ones: compare_real_tokenizers.py.

#include "src/text/text_cut.h"

#include <random>

#include "src/text/byte_letters.h"
#include "tests/text/model_files.h"

namespace ferry::test {
namespace {

using nlohmann::json;

/** Byte pairs over letters, their pairs, and some with a blank, with stages as given. */
Tokenizer tokenizer_of(const json& normalizer, const json& pre_tokenizer, bool is_byte_level) {
  const std::string blank = is_byte_level ? "\u0120" : "\u2581";
  json vocab = json::object(), merges = json::array();
  const auto add = [&](const std::string& token) {
    if (!vocab.contains(token)) vocab[token] = vocab.size();
  };
  const auto merge = [&](const std::string& left, const std::string& right) {
    add(left + right);
    merges.push_back({left, right});
  };
  add("<unk>");
  for (const char32_t letter : text::kByteLetters) {
    std::string bytes;
    text::append_utf8(bytes, letter);
    add(bytes);
  }
  add("\n"), add(" "), add(blank);
  merge(blank, "a"), merge("a", "b"), merge("ab", "ab"), merge(blank, blank), merge("b", blank);
  merge(blank + "a", "b"), merge("c", "a");
  return open_model({{"version", "1.0"},
                     {"added_tokens", json::array()},
                     {"normalizer", normalizer},
                     {"pre_tokenizer", pre_tokenizer},
                     {"post_processor", nullptr},
                     {"decoder", nullptr},
                     {"model",
                      {{"type", "BPE"},
                       {"unk_token", "<unk>"},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"vocab", vocab},
                       {"merges", merges}}}});
}

const json kNone = nullptr;
json byte_level(bool adds_blank) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", adds_blank}, {"use_regex", true}};
}
json metaspace(const char* scheme, bool splits) {
  return {{"type", "Metaspace"},
          {"replacement", "\u2581"},
          {"prepend_scheme", scheme},
          {"split", splits}};
}
const json kLlama = {
    {"type", "Sequence"},
    {"normalizers",
     {{{"type", "Prepend"}, {"prepend", "\u2581"}},
      {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}};

const json kStripped = {
    {"type", "Sequence"},
    {"normalizers", {{{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}, kLlama}}};

/** Parts of about 500 bytes; the number of parts, 0 where their ids are not those of the whole. */
size_t n_good_parts(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> whole, parts;
  tokenizer.append_ids(text, whole);
  size_t n = 1, near = 500;
  bool continues = false;
  while (near < text.size()) {
    const auto cut = find_text_cut(tokenizer, text, near, continues);
    near += 500;
    if (!cut) continue;
    tokenizer.append_ids(text.substr(0, cut->at), parts, continues);
    text.remove_prefix(cut->at);
    continues = cut->continues;
    ++n;
    near = 500;
  }
  tokenizer.append_ids(text, parts, continues);
  return whole == parts ? n : 0;
}

std::string random_text(unsigned seed, const std::string& letters, size_t n) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < n)
    text += letters[random() % letters.size()];
  return text;
}

TEST(TextCut, PartsHaveTheTokensOfTheWhole) {
  const std::pair<const char*, Tokenizer> tokenizers[] = {
      {"byte level", tokenizer_of(kNone, byte_level(false), true)},
      {"byte level with a blank in front", tokenizer_of(kNone, byte_level(true), true)},
      {"a blank before every text", tokenizer_of(kNone, metaspace("always", true), false)},
      {"a blank before the first text", tokenizer_of(kNone, metaspace("first", false), false)},
      {"no words at all", tokenizer_of(kLlama, kNone, false)},
      {"no white space at the ends", tokenizer_of(kStripped, kNone, false)},
  };
  for (const auto& [name, tokenizer] : tokenizers)
    for (unsigned seed = 0; seed < 5; ++seed)
      for (const char* letters : {"aabbcc  \n", "ab ", "ab  ", "aaaabc\n\n", "abc"})
        EXPECT_GE(n_good_parts(tokenizer, random_text(seed, letters, 6000)), 8u)
            << name << " '" << letters << "'";
}

/** The rest of a text has no blank put in front, so its own first cut may not count on one. */
TEST(TextCut, TheRestOfATextIsCutAsTheRest) {
  const Tokenizer tokenizer = tokenizer_of(kStripped, kNone, false);
  const std::string_view text = "\nab abc";
  const auto cut = find_text_cut(tokenizer, text, 1, /*continues=*/true);
  ASSERT_TRUE(cut);
  std::vector<int32_t> whole, parts;
  tokenizer.append_ids(text, whole, true);
  tokenizer.append_ids(text.substr(0, cut->at), parts, true);
  tokenizer.append_ids(text.substr(cut->at), parts, cut->continues);
  EXPECT_EQ(parts, whole);
}

/** A text of one letter is one piece, and its tokens depend on where it begins. */
TEST(TextCut, WhereNoPlaceIsGoodThereIsNone) {
  json model = small_model();
  const Tokenizer tokenizer = open_model(model);  // words that are too long are unknown
  EXPECT_FALSE(find_text_cut(tokenizer, std::string(4000, 'a'), 2000, false).has_value());
}

TEST(TextCut, APartHasTheSpecialTokensOfItsEnd) {
  json model = small_model();
  const Tokenizer tokenizer = open_model(model);
  std::vector<int32_t> parts;
  tokenizer.append_part("hello world", true, false, false, parts);
  tokenizer.append_part(" the cafe", false, true, true, parts);
  Encoding whole;
  tokenizer.encode("hello world the cafe", Tokenizer::kNoLimit, whole);
  EXPECT_EQ(parts, whole.ids);
}

}  // namespace
}  // namespace ferry::test
