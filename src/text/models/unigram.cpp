#include "src/text/models/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

namespace ferry::text {
namespace {

constexpr double kUnknownPenalty = 10;  // below the lowest score

Trie make_trie(const std::vector<std::string>& vocabulary) {
  std::vector<std::pair<std::string_view, int32_t>> keys;
  keys.reserve(vocabulary.size());
  for (size_t id = 0; id < vocabulary.size(); ++id)
    keys.emplace_back(vocabulary[id], static_cast<int32_t>(id));
  return Trie(std::move(keys));
}

/** The score as `tokenizers` reads its digits: as a whole number that is then divided by a power of
 * ten. This rounds twice, so it may be one unit in the last place away from the nearest number, and
 * that decides between ways to cut a text whose scores are equal. */
double score_of(double nearest) {
  std::array<char, 32> digits{};  // d.ddde-dd
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), std::abs(nearest),
                                 std::chars_format::scientific)
                       .ptr;
  uint64_t whole = 0;
  int n_decimals = 0, exponent = 0;
  const char* at = digits.data();
  for (bool after_point = false; at < end && *at != 'e'; ++at) {
    if (*at == '.') {
      after_point = true;
      continue;
    }
    whole = whole * 10 + static_cast<uint64_t>(*at - '0');
    n_decimals += after_point;
  }
  at += at[1] == '+' ? 2 : 1;
  std::from_chars(at, end, exponent);
  exponent -= n_decimals;
  const double power = std::pow(10.0, std::abs(exponent));
  const double score =
      exponent < 0 ? static_cast<double>(whole) / power : static_cast<double>(whole) * power;
  return std::copysign(score, nearest);
}

}  // namespace

Unigram::Unigram(const std::vector<std::string>& vocabulary,
                 std::vector<double> scores,
                 int32_t unknown_id,
                 bool byte_fallback)
    : trie_(make_trie(vocabulary)),
      tokens_(vocabulary),
      scores_(std::move(scores)),
      unknown_score_(*std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty),
      unknown_id_(unknown_id),
      byte_fallback_(byte_fallback) {
  for (unsigned byte = 0; byte < 256; ++byte)
    byte_ids_[byte] = tokens_.find(fmt::format("<0x{:02X}>", byte));
}

ReadModel Unigram::read(const JsonReader& section, const StageContext&, bool gives_bytes) {
  if (gives_bytes) section.fail("is of type Unigram, which has no letters for bytes", kSaveAgain);
  const JsonReader vocab = section.at("vocab");
  ReadModel read;
  std::vector<double> scores;
  std::unordered_set<std::string_view> seen;
  read.vocabulary.reserve(vocab.size());
  for (size_t i = 0; i < vocab.size(); ++i) {
    const nlohmann::ordered_json& entry = vocab.value()[i];
    const bool is_entry = entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
                          entry[1].is_number() && !entry[0].get_ref<const std::string&>().empty();
    if (!is_entry) vocab.at(i).refuse("a token and its score");
    read.vocabulary.push_back(entry[0].get<std::string>());
    scores.push_back(score_of(entry[1].get<double>()));
  }
  for (const std::string& token : read.vocabulary)
    if (!seen.insert(token).second)
      vocab.fail(fmt::format("has the token '{}' twice", token), kFetchAgain);
  if (read.vocabulary.empty()) vocab.fail("is empty", kFetchAgain);
  const auto unknown_id = static_cast<int32_t>(
      section.integer("unk_id", 0, static_cast<int64_t>(read.vocabulary.size()) - 1));
  read.unknown = read.vocabulary[static_cast<size_t>(unknown_id)];
  read.model = std::make_unique<Unigram>(read.vocabulary, std::move(scores), unknown_id,
                                         section.flag("byte_fallback", false));
  return read;
}

void Unigram::encode(const Pieces& pieces, size_t enough, TokenSink out) const {
  const std::string_view text = pieces.text.text();
  std::vector<Node> ends;
  std::vector<Cut> cuts;
  for (const Span span : pieces.spans) {
    if (out.ids.size() >= enough) return;
    const std::string_view piece = text.substr(span.begin, span.size());
    encode_piece(piece, ends, cuts);
    for (const Cut& cut : cuts) {
      const Span place = span_of(span.begin + cut.span.begin, span.begin + cut.span.end);
      int32_t id = cut.id;
      if (id == unknown_id_) {  // side by side, unknown characters may still be a token
        const std::string_view token = piece.substr(cut.span.begin, cut.span.size());
        id = tokens_.find(token);
        if (id < 0 && byte_fallback_ && fall_back(token, place, out)) continue;
      }
      out.push(id < 0 ? unknown_id_ : id, place.begin, place.end);
    }
  }
}

/** Sets `cuts` to the tokens' places in the piece. */
void Unigram::encode_piece(std::string_view piece,
                           std::vector<Node>& ends,
                           std::vector<Cut>& cuts) const {
  ends.assign(piece.size() + 1, Node{});
  for (size_t begin = 0; begin < piece.size();) {
    size_t next = begin;
    next_code_point(piece, next);
    const double score_here = ends[begin].score;
    auto offer = [&](size_t end, int32_t id, double score) {
      Node& node = ends[end];
      // The first of equals stays: the one whose last token is the longest.
      if (node.begin == kUnreached || score + score_here > node.score)
        node = {score + score_here, static_cast<uint32_t>(begin), id};
    };
    bool has_character = false;
    trie_.each_prefix(piece.substr(begin), [&](int32_t id, size_t size) {
      offer(begin + size, id, scores_[static_cast<size_t>(id)]);
      has_character = has_character || begin + size == next;
    });
    if (!has_character) offer(next, unknown_id_, unknown_score_);
    begin = next;
  }

  cuts.clear();
  for (size_t end = piece.size(); end > 0;) {
    const Node& node = ends[end];
    if (node.id == unknown_id_ && !cuts.empty() && cuts.back().id == unknown_id_)
      cuts.back().span.begin = node.begin;
    else
      cuts.push_back({span_of(node.begin, end), node.id});
    end = node.begin;
  }
  std::reverse(cuts.begin(), cuts.end());
}

/** The tokens of the bytes, each at the place of the whole, if all are there. */
bool Unigram::fall_back(std::string_view text, Span place, TokenSink out) const {
  for (const char c : text)
    if (byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
  for (const char c : text)
    out.push(byte_ids_[static_cast<unsigned char>(c)], place.begin, place.end);
  return true;
}

}  // namespace ferry::text
