#include "src/text/models/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <queue>
#include <set>
#include <stdexcept>

#include "src/text/byte_letters.h"

namespace ferry::text {
namespace {

/** Above this a heap finds the next merge sooner than a look at all. */
constexpr size_t kShort = 48;

/** More characters before a blank's letter are no longer looked through at each blank. */
constexpr size_t kJoined_max = 8;

/** SentencePiece's letter for a blank. */
constexpr std::string_view kBlank = "\u2581";

/** The next place at or after `at` where a blank's letter follows another character than those, or
 * the end. */
size_t next_word(std::string_view text, size_t at, const std::vector<std::string>& joined) {
  while ((at = text.find(kBlank, at)) != text.npos) {
    const auto ends_in = [before = text.substr(0, at)](const std::string& character) {
      return before.ends_with(character);
    };
    if (at > 0 && std::none_of(joined.begin(), joined.end(), ends_in)) return at;
    at += kBlank.size();
  }
  return text.size();
}

/** The characters before a blank's letter inside of tokens, itself too. */
std::vector<std::string> before_blanks(const std::vector<std::string>& vocabulary) {
  std::set<std::string> found = {std::string(kBlank)};
  for (const std::string& token : vocabulary)
    for (size_t at = 0; (at = token.find(kBlank, at)) != token.npos; at += kBlank.size()) {
      size_t begin = at;
      while (begin > 0 && (static_cast<unsigned char>(token[--begin]) & 0xC0) == 0x80) {
      }
      if (begin < at) found.insert(token.substr(begin, at - begin));
    }
  return {found.begin(), found.end()};
}

size_t character_size(std::string_view text, size_t at) {
  const size_t begin = at;
  next_code_point(text, at);
  return at - begin;
}

/** The tokens as the pieces write them. One that is no letters of bytes is never found: empty. */
std::vector<std::string> in_pieces(const std::vector<std::string>& vocabulary, bool bytes) {
  if (!bytes) return vocabulary;
  std::vector<std::string> tokens;
  tokens.reserve(vocabulary.size());
  for (const std::string& token : vocabulary)
    tokens.push_back(bytes_of_letters(token).value_or(""));
  return tokens;
}

MergeTable make_table(const Merges& merges, bool share_ranks) {
  MergeTable table(merges.size());
  for (const Merge& merge : merges)
    table.add(merge.left, merge.right, merge.merged, share_ranks);
  return table;
}

/** The pairs' texts stay in the list. */
TokenPairs read_pairs(const JsonReader& list) {
  TokenPairs pairs;
  pairs.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const nlohmann::ordered_json& value = list.value()[i];
    if (value.is_string()) {
      const std::string_view text = value.get_ref<const std::string&>();
      const size_t blank = text.find(' ');
      if (blank == text.npos || text.find(' ', blank + 1) != text.npos)
        list.at(i).fail(fmt::format("is '{}', expected two tokens and a blank between them", text),
                        kFetchAgain);
      pairs.emplace_back(text.substr(0, blank), text.substr(blank + 1));
    } else {
      const bool is_pair =
          value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string();
      if (!value.is_array()) list.at(i).refuse("a pair of tokens");
      if (!is_pair) list.at(i).fail("is no pair of tokens", kFetchAgain);
      pairs.emplace_back(value[0].get_ref<const std::string&>(),
                         value[1].get_ref<const std::string&>());
    }
  }
  return pairs;
}

}  // namespace

/** The memory of merging, kept from piece to piece. */
class Bpe::Work {
 public:
  std::vector<Symbol> symbols;
  std::vector<uint32_t> ranks;
};

Bpe::Bpe(BpeOptions options, const std::vector<std::string>& vocabulary, const Merges& merges)
    : options_(std::move(options)),
      plain_(options_.continuing_prefix.empty() && options_.word_suffix.empty()),
      tokens_(in_pieces(vocabulary, options_.bytes)),
      merges_(make_table(merges, options_.leftmost_first)),
      whole_(std::make_unique<std::atomic<uint8_t>[]>(vocabulary.size())) {
  if (options_.byte_fallback && !plain_)
    throw std::invalid_argument("byte_fallback beside a prefix or suffix of tokens is not known");
  if (!options_.unknown.empty()) {
    const auto found = std::find(vocabulary.begin(), vocabulary.end(), options_.unknown);
    if (found == vocabulary.end())
      throw std::invalid_argument(
          fmt::format("the vocabulary has no unknown token '{}'", options_.unknown));
    unknown_id_ = static_cast<int32_t>(found - vocabulary.begin());
  }
  byte_ids_.fill(-1);
  if (options_.byte_fallback && options_.bytes) find_byte_ids(TokenMap(vocabulary));
  if (options_.byte_fallback && !options_.bytes) find_byte_ids(tokens_);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto unit = static_cast<char>(byte);
    unit_ids_[byte] = tokens_.find({&unit, 1});
  }
  if (plain_ && !options_.bytes && !options_.ignore_merges && tokens_.find(kBlank) >= 0)
    joined_ = before_blanks(vocabulary);
  cuts_at_blanks_ = !joined_.empty() && joined_.size() <= kJoined_max;
  const auto is_missing = [](int32_t id) { return id < 0; };
  fills_every_piece_ =
      unknown_id_ >= 0 ||
      (options_.byte_fallback && std::none_of(byte_ids_.begin(), byte_ids_.end(), is_missing)) ||
      (options_.bytes && plain_ && std::none_of(unit_ids_.begin(), unit_ids_.end(), is_missing));
}

void Bpe::find_byte_ids(const TokenMap& ids) {
  for (unsigned byte = 0; byte < 256; ++byte)
    byte_ids_[byte] = ids.find(fmt::format("<0x{:02X}>", byte));
}

ReadModel Bpe::read(const JsonReader& section, const StageContext&, bool gives_bytes) {
  if (const auto dropout = section.find("dropout"); dropout && dropout->number(0, 1) > 0)
    dropout->fail("draws other tokens for a text each time", "set it to null");
  BpeOptions options;
  options.unknown = section.text("unk_token", "");
  options.continuing_prefix = section.text("continuing_subword_prefix", "");
  options.word_suffix = section.text("end_of_word_suffix", "");
  options.fuse_unknown = section.flag("fuse_unk", false);
  options.byte_fallback = section.flag("byte_fallback", false);
  options.ignore_merges = section.flag("ignore_merges", false);
  options.bytes = gives_bytes;
  ReadModel read;
  read.unknown = options.unknown;
  read.vocabulary = read_vocabulary(section.at("vocab"));
  try {
    const Merges merges =
        find_merges(read.vocabulary, read_pairs(section.at("merges")), options.continuing_prefix);
    read.model = std::make_unique<Bpe>(std::move(options), read.vocabulary, merges);
  } catch (const std::invalid_argument& error) {
    section.fail(fmt::format("is wrong: {}", error.what()), kFetchAgain);
  }
  return read;
}

void Bpe::encode(const Pieces& pieces, size_t enough, TokenSink out) const {
  const std::string_view text = pieces.text.text();
  Work work;
  for (const Span span : pieces.spans) {
    if (out.ids.size() >= enough) return;
    if (!cuts_at_blanks_) {
      encode_piece(text, span, work, out);
      continue;
    }
    // No merge reaches over the beginning of a word, so words are pieces: short ones, mostly
    // tokens.
    const std::string_view piece = text.substr(span.begin, span.size());
    for (size_t begin = 0, end; begin < piece.size() && out.ids.size() < enough; begin = end) {
      end = next_word(piece, begin + 1, joined_);
      encode_piece(text, span_of(span.begin + begin, span.begin + end), work, out);
    }
  }
}

void Bpe::encode_piece(std::string_view text, Span span, Work& work, TokenSink out) const {
  const std::string_view piece = text.substr(span.begin, span.size());
  if (plain_ || options_.ignore_merges) {
    const int32_t id = tokens_.find(piece);
    if (id >= 0 && (options_.ignore_merges || is_whole(id, piece, work))) {
      out.push(id, span.begin, span.end);
      return;
    }
  }
  set_symbols(piece, work);
  merge(work);
  if (options_.bytes && !fills_every_piece_ && n_bytes_of(work) < piece.size())
    return push_after_gaps(piece, span.begin, work, out);
  size_t at = span.begin;
  for (const Symbol& symbol : work.symbols) {
    out.push(symbol.id, at, at + symbol.size);
    at += symbol.size;
  }
}

size_t Bpe::n_bytes_of(const Work& work) {
  size_t n_bytes = 0;
  for (const Symbol& symbol : work.symbols)
    n_bytes += symbol.size;
  return n_bytes;
}

/** Hugging Face's tokenizers say that a token begins where the one before it ends, and count in the
 * UTF-8 of letters: behind a dropped byte places lie too early, by one byte or by two. */
void Bpe::push_after_gaps(std::string_view piece,
                          size_t begin,
                          const Work& work,
                          TokenSink out) const {
  std::vector<size_t> byte_at;       // by place in the letters
  std::vector<size_t> letter_sizes;  // of the bytes that were not dropped
  for (size_t i = 0; i < piece.size(); ++i) {
    const auto byte = static_cast<unsigned char>(piece[i]);
    const size_t size = kByteLetters[byte] < 0x80 ? 1 : 2;
    byte_at.insert(byte_at.end(), size, i);
    const bool is_kept = symbol_id(piece.substr(i, 1), i == 0, i + 1 == piece.size()) >= 0 ||
                         (options_.byte_fallback && byte_ids_[byte] >= 0);
    if (is_kept) letter_sizes.push_back(size);
  }
  size_t place = 0;
  auto next = letter_sizes.begin();
  for (const Symbol& symbol : work.symbols) {
    const auto last = next + symbol.size;
    const size_t end = std::accumulate(next, last, place);
    out.push(symbol.id, begin + byte_at[place], begin + byte_at[end - 1] + 1);
    place = end;
    next = last;
  }
}

bool Bpe::is_whole(int32_t id, std::string_view piece, Work& work) const {
  std::atomic<uint8_t>& known = whole_[static_cast<size_t>(id)];
  uint8_t answer = known.load(std::memory_order_relaxed);
  if (answer == not_asked) {
    set_symbols(piece, work);
    merge(work);
    answer = work.symbols.size() == 1 && work.symbols[0].id == id ? yes : no;
    known.store(answer, std::memory_order_relaxed);  // any thread finds the same
  }
  return answer == yes;
}

/** The symbols that merging begins with. */
void Bpe::set_symbols(std::string_view piece, Work& work) const {
  work.symbols.clear();
  Symbol unknown{-1, 0};  // waits for others to be fused with; size 0: none
  auto flush = [&] {
    if (unknown.size > 0) work.symbols.push_back(unknown);
    unknown.size = 0;
  };
  for (size_t i = 0; i < piece.size();) {
    const size_t size = options_.bytes ? 1 : character_size(piece, i);
    const std::string_view unit = piece.substr(i, size);
    const int32_t id = symbol_id(unit, i == 0, i + size == piece.size());
    i += size;
    if (id >= 0) {
      flush();
      work.symbols.push_back({id, static_cast<uint32_t>(size)});
    } else if (!(options_.byte_fallback && fall_back(unit, work)) && unknown_id_ >= 0) {
      if (!options_.fuse_unknown) flush();
      unknown.id = unknown_id_;
      unknown.size += static_cast<uint32_t>(size);
    }
  }
  flush();
}

int32_t Bpe::symbol_id(std::string_view unit, bool first, bool last) const {
  if (plain_)
    return unit.size() == 1 ? unit_ids_[static_cast<unsigned char>(unit[0])] : tokens_.find(unit);
  std::string token = first ? "" : options_.continuing_prefix;
  token += unit;
  if (last) token += options_.word_suffix;
  return tokens_.find(token);
}

/** Adds the <0x..> tokens of a character if all are there. */
bool Bpe::fall_back(std::string_view unit, Work& work) const {
  for (const char c : unit)
    if (byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
  for (const char c : unit)
    work.symbols.push_back({byte_ids_[static_cast<unsigned char>(c)], 1});
  return true;
}

void Bpe::merge(Work& work) const {
  if (work.symbols.size() < 2) return;
  if (work.symbols.size() <= kShort)
    merge_short(work.symbols, work.ranks);
  else
    merge_long(work.symbols);
}

void Bpe::merge_short(std::vector<Symbol>& symbols, std::vector<uint32_t>& ranks) const {
  const auto rank_at = [&](size_t i) { return merges_.rank(symbols[i].id, symbols[i + 1].id); };
  ranks.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    ranks.push_back(rank_at(i));
  while (!ranks.empty()) {
    const auto best = std::min_element(ranks.begin(), ranks.end());
    if (*best == MergeTable::kNone) return;
    const auto i = static_cast<size_t>(best - ranks.begin());
    symbols[i] = {merges_.merged(*best), symbols[i].size + symbols[i + 1].size};
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ranks.erase(best);
    if (i > 0) ranks[i - 1] = rank_at(i - 1);
    if (i < ranks.size()) ranks[i] = rank_at(i);
  }
}

/** The same in a time that grows with n log n: a linked list, and a heap of the pairs. */
void Bpe::merge_long(std::vector<Symbol>& symbols) const {
  struct Pair {
    uint32_t rank, left, left_size, right_size;
    bool operator<(const Pair& other) const {  // the heap's top is its greatest
      return std::pair{rank, left} > std::pair{other.rank, other.left};
    }
  };
  const auto n = static_cast<uint32_t>(symbols.size());
  std::vector<uint32_t> before(n), after(n);
  std::priority_queue<Pair> pairs;
  auto add = [&](uint32_t left) {
    if (left >= n || after[left] >= n) return;
    const Symbol &a = symbols[left], &b = symbols[after[left]];
    const uint32_t rank = merges_.rank(a.id, b.id);
    if (rank != MergeTable::kNone) pairs.push({rank, left, a.size, b.size});
  };
  for (uint32_t i = 0; i < n; ++i) {
    before[i] = i - 1;  // of the first: above every index
    after[i] = i + 1;
  }
  for (uint32_t i = 0; i + 1 < n; ++i)
    add(i);
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    Symbol& left = symbols[pair.left];
    const uint32_t right = after[pair.left];
    // A pair is still there if both of its symbols are as long as they were: symbols only grow.
    if (left.size != pair.left_size || right >= n || symbols[right].size != pair.right_size)
      continue;
    left = {merges_.merged(pair.rank), left.size + symbols[right].size};
    symbols[right].size = 0;
    after[pair.left] = after[right];
    if (after[right] < n) before[after[right]] = pair.left;
    add(before[pair.left]);
    add(pair.left);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.size == 0; });
}

}  // namespace ferry::text
