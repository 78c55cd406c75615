// The normalizers of SentencePiece's models: which characters a map replaces and where they came
// from, clusters of graphemes, and maps that are damaged.

#include <deque>
#include <map>
#include <random>

#include "src/text/base64.h"
#include "src/text/normalizers/precompiled.h"
#include "src/text/unicode/graphemes.h"
#include "tests/text/model_files.h"

namespace ferry::test {
namespace {

using nlohmann::json;
using text::Precompiled;
using text::Span;

std::string u32(uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i)
    bytes.push_back(static_cast<char>(value >> 8 * i));
  return bytes;
}

/** A map as SentencePiece writes it, with a block of 256 units for the children of each node. */
std::string charsmap(const std::map<std::string, std::string>& replacements) {
  struct Node {
    std::map<unsigned char, size_t> children;
    int64_t place = -1;
  };
  std::deque<Node> nodes(1);
  std::string blob;
  for (const auto& [from, to] : replacements) {
    size_t node = 0;
    for (const char c : from) {
      const auto [child, is_new] =
          nodes[node].children.emplace(static_cast<unsigned char>(c), nodes.size());
      if (is_new) nodes.emplace_back();
      node = child->second;
    }
    nodes[node].place = static_cast<int64_t>(blob.size());
    blob += to + '\0';
  }
  // Node i has block i + 1 for its children, the first of it for its leaf.
  std::vector<uint32_t> units(256 * (nodes.size() + 1));
  std::vector<size_t> at(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const size_t block = 256 * (i + 1);
    const bool has_leaf = nodes[i].place >= 0;
    units[at[i]] |=
        static_cast<uint32_t>((at[i] ^ block) << 10 | static_cast<size_t>(has_leaf) << 8);
    if (has_leaf) units[block] = 1u << 31 | static_cast<uint32_t>(nodes[i].place);
    for (const auto& [byte, child] : nodes[i].children) {
      at[child] = block ^ byte;
      units[at[child]] = byte;
    }
  }
  std::string bytes = u32(static_cast<uint32_t>(4 * units.size()));
  for (const uint32_t unit : units)
    bytes += u32(unit);
  return bytes + blob;
}

struct Normalized {
  std::string text;
  std::vector<Span> origins;  // of each byte
};

Normalized normalize(const text::Normalizer& normalizer, std::string_view original) {
  text::NormalizedText aligned, plain;
  aligned.assign(original, 0, true);
  plain.assign(original, 0, false);
  normalizer.normalize(aligned);
  normalizer.normalize(plain);
  EXPECT_EQ(aligned.text(), plain.text());
  Normalized result{std::string(aligned.text()), {}};
  for (size_t i = 0; i < result.text.size(); ++i)
    result.origins.push_back(aligned.origin(i, i + 1));
  return result;
}

const std::map<std::string, std::string> kSomeReplacements = {
    {"ﬁ", "fi"}, {"e\u0301", "é"}, {"\t", " "}, {"\u00ad", ""}, {"ＡＢ", "x"}, {"™", "TM"}};

TEST(Precompiled, ReplacesWithOrigins) {
  const Precompiled map(charsmap(kSomeReplacements));
  EXPECT_EQ(normalize(map, "").text, "");
  EXPECT_EQ(normalize(map, "abc").text, "abc");
  const Normalized ligature = normalize(map, "aﬁb");
  EXPECT_EQ(ligature.text, "afib");
  EXPECT_EQ(ligature.origins, (std::vector<Span>{{0, 1}, {1, 4}, {1, 4}, {4, 5}}));
  const Normalized composed = normalize(map, "e\u0301\tb");
  EXPECT_EQ(composed.text, "é b");
  EXPECT_EQ(composed.origins, (std::vector<Span>{{0, 1}, {0, 1}, {3, 4}, {4, 5}}));
  const Normalized dropped = normalize(map, "a\u00adb");
  EXPECT_EQ(dropped.text, "ab");
  EXPECT_EQ(dropped.origins, (std::vector<Span>{{0, 1}, {3, 4}}));
}

TEST(Precompiled, TakesClustersOfLessThanSixBytesWhole) {
  const Precompiled map(charsmap(kSomeReplacements));
  EXPECT_EQ(normalize(map, "e\u0301\u0302").text, "é");   // the second mark is lost
  EXPECT_EQ(normalize(map, "ﬁ\u0302").text, "fi");        // here too
  EXPECT_EQ(normalize(map, "™\u20dd").text, "TM\u20dd");  // six bytes: by characters
  EXPECT_EQ(normalize(map, "e\u0301\u20dd").text, "e\u0301\u20dd");
  EXPECT_EQ(normalize(map, "ＡＢ").text, "ＡＢ");  // two clusters
  EXPECT_EQ(normalize(map, "\xF0\x9F\x98\x80\u200d™\u0302").text,
            "\xF0\x9F\x98\x80\u200dTM\u0302");  // one with the picture before it
}

TEST(Precompiled, DropsWhatComesFirst) {
  const Precompiled map(charsmap(kSomeReplacements));
  EXPECT_EQ(normalize(map, "\u00ad").text, "");
  EXPECT_EQ(normalize(map, "\u00adab").text, "ab");
}

json precompiled_model(std::string_view base64) {
  json model = small_model();
  model["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", base64}};
  return model;
}

TEST(Precompiled, FilesThatAreWrong) {
  for (const char* text : {"A", "AAA", "AA=A", "====", "AAA*", "QR==", "\u00e9\u00e9"})
    expect_error(Fault::data, {"normalizer.precompiled_charsmap", "is not base64"},
                 [&] { open_model(precompiled_model(text)); });
  for (const char* text : {"", "AAAA", "AAAAAA==", "BQAAAA==", "/////w=="})
    expect_error(Fault::data, {"normalizer.precompiled_charsmap", "its table has"},
                 [&] { open_model(precompiled_model(text)); });
}

TEST(Precompiled, DamagedAnywhereWorksOrIsRefused) {
  const std::string whole = charsmap(kSomeReplacements);
  std::mt19937 random(3);
  int n_refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = whole;
    // Most units are free: damage those that are not.
    size_t at = random() % damaged.size();
    while (damaged[at] == 0)
      at = (at + 1) % damaged.size();
    damaged[at] = static_cast<char>(random());
    if (i % 3 == 0) damaged.resize(random() % damaged.size());
    try {
      const Precompiled map(damaged);
      for (const auto& [from, to] : kSomeReplacements)
        normalize(map, "a" + from + "b" + from + to);
    } catch (const std::invalid_argument&) {
      ++n_refused;
    }
  }
  EXPECT_GT(n_refused, 500);
}

TEST(Nmt, DropsAndBlanks) {
  const text::Nmt nmt;
  const Normalized result = normalize(nmt, "a\u0001b\tc\u200bd\u2581\u007f");
  EXPECT_EQ(result.text, "ab c d ");
  EXPECT_EQ(result.origins,
            (std::vector<Span>{{0, 1}, {2, 3}, {3, 4}, {4, 5}, {5, 8}, {8, 9}, {9, 12}}));
}

std::vector<std::string> clusters(std::string_view text) {
  std::vector<std::string> found;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text::cluster_end(text, begin, text::GraphemeTable::get());
    found.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return found;
}

TEST(Graphemes, Rules) {
  using Clusters = std::vector<std::string>;
  EXPECT_EQ(clusters("a\u0301b"), (Clusters{"a\u0301", "b"}));
  EXPECT_EQ(clusters("\r\n\n\r\u0301"), (Clusters{"\r\n", "\n", "\r", "\u0301"}));
  EXPECT_EQ(clusters("\u1100\u1161\u11a8\u1100"), (Clusters{"\u1100\u1161\u11a8", "\u1100"}));
  EXPECT_EQ(clusters("\uac01\u11a8\u1161"), (Clusters{"\uac01\u11a8", "\u1161"}));
  EXPECT_EQ(clusters("\u0600a"), (Clusters{"\u0600a"}));
  EXPECT_EQ(clusters("\u0915\u094d\u0915\u0915"), (Clusters{"\u0915\u094d\u0915", "\u0915"}));
  EXPECT_EQ(clusters("\u0915\u200d\u0915"), (Clusters{"\u0915\u200d", "\u0915"}));
  EXPECT_EQ(clusters("©\u0301\u200d™™"), (Clusters{"©\u0301\u200d™", "™"}));
  EXPECT_EQ(clusters("a\u200d™"), (Clusters{"a\u200d", "™"}));
}

TEST(Base64, Bytes) {
  EXPECT_EQ(text::bytes_of_base64(""), "");
  EXPECT_EQ(text::bytes_of_base64("YQ=="), "a");
  EXPECT_EQ(text::bytes_of_base64("YWI="), "ab");
  EXPECT_EQ(text::bytes_of_base64("YWJj"), "abc");
  EXPECT_EQ(text::bytes_of_base64("+/+/"), "\xfb\xff\xbf");
  EXPECT_FALSE(text::bytes_of_base64("YWJ"));
  EXPECT_FALSE(text::bytes_of_base64("Y W="));
  EXPECT_FALSE(text::bytes_of_base64("YX=="));
}

}  // namespace
}  // namespace ferry::test
