#include "src/text/spec/gguf_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "src/base/error.h"
#include "src/files/gguf/gguf_names.h"
#include "src/files/plain_file.h"
#include "src/text/pre_tokenizers/byte_level.h"
#include "src/text/spec/sentence_piece_file.h"
#include "src/text/spec/tokenizer_spec.h"
#include "src/text/tokenizer.h"

namespace ferry::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using TokenKind = GgufTokenKind;

/** SentencePiece's letter for a blank. */
constexpr std::string_view kMetaspace = "\u2581";

[[noreturn]] void refuse(const fs::path& file, std::string_view what, std::string_view hint = {}) {
  throw Error(Fault::data, "gguf.tokenizer",
              fmt::format("'{}' {}, which a GGUF file cannot say", file.string(), what),
              hint.empty() ? "export a Hugging Face directory in its place: --format hf" : hint);
}

std::string text_at(const Json& section, const char* key) {
  const auto found = section.find(key);
  return found != section.end() && found->is_string() ? found->get<std::string>() : std::string();
}
bool flag_at(const Json& section, const char* key, bool otherwise) {
  const auto found = section.find(key);
  return found != section.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

/** The parts of a section that may be a Sequence, in their order. */
std::vector<Json> parts_of(const Json& section, const char* key) {
  if (section.is_null()) return {};
  if (text_at(section, "type") != "Sequence") return {section};
  std::vector<Json> parts;
  for (const Json& part : section.at(key))
    for (Json& inner : parts_of(part, key))
      parts.push_back(std::move(inner));
  return parts;
}

/** A null where there is none. */
const Json& section_of(const Json& root, const char* key) {
  static const Json none;
  const auto found = root.find(key);
  return found == root.end() ? none : *found;
}

/** Does the section replace that text by the other one? */
bool is_replace(const Json& section, std::string_view from, std::string_view to) {
  return text_at(section, "type") == "Replace" && text_at(section, "content") == to &&
         text_at(section_of(section, "pattern"), "String") == from;
}

/** Its steps as gguf_splits() has them. */
std::vector<std::string> steps_of(const fs::path& file, const Json& pre_tokenizer) {
  std::vector<std::string> steps;
  const std::vector<Json> parts = parts_of(pre_tokenizer, "pretokenizers");
  for (const Json& part : parts) {
    const std::string type = text_at(part, "type");
    if (type == "ByteLevel") {
      // At the top the flag may be the configuration's: see below.
      if (parts.size() > 1 && flag_at(part, "add_prefix_space", true))
        refuse(file, "puts a blank before a text");
      if (flag_at(part, "use_regex", true)) steps.emplace_back(kSplitsByteWords);
    } else if (type == "Digits" && flag_at(part, "individual_digits", false)) {
      steps.emplace_back(kSplitsEachDigit);
    } else if (type == "Split" && text_at(part, "behavior") == "Isolated" &&
               !flag_at(part, "invert", false)) {
      steps.push_back(text_at(section_of(part, "pattern"), "Regex"));
    } else {
      refuse(file, fmt::format("splits texts by a {} that llama.cpp does not have", type));
    }
  }
  return steps;
}

std::string pre_of(const fs::path& file,
                   const std::vector<std::string>& steps,
                   bool ignores_merges) {
  for (const GgufSplit& known : gguf_splits())
    if (std::ranges::equal(known.steps, steps) && known.ignores_merges == ignores_merges)
      return std::string(known.pre);
  std::string shown = "nothing";
  for (const std::string& step : steps)
    shown = shown == "nothing" ? step : shown + ", then " + step;
  constexpr size_t kShown_bytes = 200;
  if (shown.size() > kShown_bytes) shown = shown.substr(0, kShown_bytes) + "...";
  refuse(file, fmt::format("splits texts by a pattern that Ferry knows no name for ({}{})", shown,
                           ignores_merges ? ", with ignore_merges" : ""));
}

/** A pair of tokens as a merge of a GGUF file. */
std::string merge_of(const fs::path& file, std::string_view left, std::string_view right) {
  if (left.find(' ') != left.npos || right.find(' ') != right.npos)
    refuse(file, fmt::format("merges '{}' and '{}', of which one has a blank", left, right));
  return fmt::format("{} {}", left, right);
}

/** The merges of a tokenizer.json: "a b", or lists of two. */
std::vector<std::pair<std::string, std::string>> merges_in(const fs::path& file,
                                                           const Json& model) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const Json& merge : section_of(model, "merges")) {
    if (merge.is_array() && merge.size() == 2) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string pair = merge.is_string() ? merge.get<std::string>() : std::string();
    const size_t blank = pair.find(' ');
    if (blank == pair.npos) fail(file, "has a merge that is no pair of tokens", kFetchAgain);
    merges.emplace_back(pair.substr(0, blank), pair.substr(blank + 1));
  }
  return merges;
}

bool looks_special(const std::string& token) {
  return (token.starts_with("<|") && token.ends_with("|>")) ||
         (token.starts_with("<\uff5c") && token.ends_with("\uff5c>"));
}

/** The value of "<0x0A>", -1 of other tokens. */
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  int value = 0;
  for (const char digit : token.substr(3, 2)) {
    const size_t found = std::string_view("0123456789ABCDEF").find(digit);
    if (found == std::string_view::npos) return -1;
    value = 16 * value + static_cast<int>(found);
  }
  return value;
}

/** Phi-3's special tokens take the blanks behind them, and these do not. */
bool leaves_blanks(const std::string& token) {
  return token == "<unk>" || token == "<s>" || token == "<|endoftext|>";
}

/** Tokens and their kinds, of the vocabulary and the added ones; ids without a token stay empty. */
void set_tokens(const TokenizerSpec& spec, GgufTokens& its) {
  its.tokens = spec.vocabulary;
  its.kinds.assign(its.tokens.size(), TokenKind::normal);
  const bool is_llama = its.model == "llama";
  std::string leaving;  // a special token that leaves the blanks behind it
  for (const AddedToken& added : spec.added) {
    const auto id = static_cast<size_t>(added.id);
    const bool is_new = id >= spec.vocabulary.size();
    if (id >= its.tokens.size()) {
      its.tokens.resize(id + 1);
      its.kinds.resize(id + 1, TokenKind::normal);
    }
    if (added.lstrip || added.single_word)
      refuse(spec.file, fmt::format("has the token '{}', which asks for what stands before it ({})",
                                    added.content, added.lstrip ? "lstrip" : "single_word"));
    its.tokens[id] = added.content;
    if (added.special && added.rstrip) its.takes_blanks_after = true;
    if (added.special && !added.rstrip && !leaves_blanks(added.content)) leaving = added.content;
    if (added.special || looks_special(added.content)) {
      its.kinds[id] = TokenKind::control;
      continue;
    }
    if (added.rstrip)
      refuse(spec.file,
             fmt::format("has the token '{}', which takes blanks behind it", added.content));
    const bool has_blank = added.content.find(kMetaspace) != std::string::npos;
    // A run of such letters is made by merges; the text itself has blanks in their place.
    if (is_llama && has_blank && !is_new) continue;
    if (is_llama &&
        (has_blank || (added.normalized && !added.is_normal &&
                       (its.adds_blank || added.content.find(' ') != std::string::npos))))
      refuse(spec.file,
             fmt::format("has the added token '{}', which is sought in the normalized text",
                         added.content),
             "add it as AddedToken(..., normalized=False) and save the tokenizer again");
    its.kinds[id] = TokenKind::user_defined;
  }
  if (its.takes_blanks_after && !leaving.empty())
    refuse(spec.file,
           fmt::format("has special tokens that take blanks behind them, and '{}', which does not",
                       leaving));
}

void set_ids(const TokenizerSpec& spec, GgufTokens& its) {
  const auto id_of_name = [&](const std::string& name) {
    return name.empty() ? -1 : its.find(name);
  };
  its.bos = id_of_name(spec.bos);
  its.eos = id_of_name(spec.eos);
  its.unk = id_of_name(spec.unk);
  its.pad = id_of_name(spec.pad);
  if (!spec.post_processor || !spec.post_processor->single()) return;
  bool is_before = true;
  for (const Template::Piece& piece : spec.post_processor->single()->pieces) {
    if (piece.text >= 0) {
      is_before = false;
      continue;
    }
    int32_t& place = is_before ? its.first : its.last;
    if (piece.ids.size() != 1 || place >= 0)
      refuse(spec.file,
             fmt::format("puts several tokens {} a text", is_before ? "before" : "behind"));
    place = piece.ids.front();
  }
}

/** Ids without a token get one that no text has. */
void fill_holes(GgufTokens& its) {
  for (size_t id = 0; id < its.tokens.size(); ++id) {
    if (!its.tokens[id].empty()) continue;
    its.tokens[id] = fmt::format("[PAD{}]", id);
    its.kinds[id] = TokenKind::unused;
  }
}

/** The places inside of a token where a character begins. */
std::vector<size_t> cuts_of(const std::string& token) {
  std::vector<size_t> cuts;
  for (size_t at = 1; at < token.size(); ++at)
    if ((static_cast<unsigned char>(token[at]) & 0xC0) != 0x80) cuts.push_back(at);
  return cuts;
}

/** Scores by which llama.cpp merges as the merges say. It joins any two neighbours whose text is a
 * token, the highest score first, so every such pair has to be a merge, and all merges to one token
 * have to follow each other. */
void set_scores(const TokenizerSpec& spec,
                const std::vector<std::pair<std::string, std::string>>& merges,
                GgufTokens& its) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < spec.vocabulary.size(); ++id)
    if (!spec.vocabulary[id].empty()) ids.emplace(spec.vocabulary[id], id);
  constexpr double kNever = -1e9;
  its.scores.assign(its.tokens.size(), kNever);
  std::vector<size_t> n_merges(its.tokens.size());
  std::optional<size_t> before;
  double n_made = 0;
  for (const auto& [left, right] : merges) {
    const auto found = ids.find(left + right);
    if (found == ids.end())
      fail(spec.file, fmt::format("has no token for the merge of '{}' and '{}'", left, right),
           kFetchAgain);
    const size_t id = found->second;
    if (before != id) {
      if (n_merges[id] > 0)
        refuse(spec.file, fmt::format("merges '{}' at two ranks", its.tokens[id]));
      its.scores[id] = -n_made;
      n_made += 1;
      before = id;
    }
    ++n_merges[id];
  }
  for (size_t id = 0; id < spec.vocabulary.size(); ++id) {
    const std::string& token = spec.vocabulary[id];
    if (its.kinds[id] != TokenKind::normal || token.empty()) continue;
    const std::vector<size_t> cuts = cuts_of(token);
    if (cuts.empty()) its.scores[id] = 0;
    const auto n_pairs = std::ranges::count_if(cuts, [&](size_t cut) {
      return ids.contains(token.substr(0, cut)) && ids.contains(token.substr(cut));
    });
    if (static_cast<size_t>(n_pairs) != n_merges[id])
      refuse(spec.file,
             fmt::format("makes the token '{}' in {} of {} ways", token, n_merges[id], n_pairs));
  }
}

/** Byte tokens of a vocabulary that falls back to them. */
void set_bytes(const TokenizerSpec& spec, GgufTokens& its) {
  int n = 0;
  for (size_t id = 0; id < its.tokens.size(); ++id)
    if (byte_of(its.tokens[id]) >= 0) its.kinds[id] = TokenKind::byte, ++n;
  if (n != 256) refuse(spec.file, fmt::format("has {} of 256 tokens of bytes", n));
}

/** The text that a tokenizer makes of another one, with its letters for blanks. */
std::string text_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.append_ids(text, ids);
  std::string joined;
  for (const int32_t id : ids) {
    const std::string& token = tokenizer.id_to_token(id);
    const int byte = byte_of(token);
    joined += byte >= 0 ? std::string(1, static_cast<char>(byte)) : token;
  }
  return joined;
}

/** Refuses a SentencePiece tokenizer that changes texts more than llama.cpp does. */
void check_normalizing(const fs::path& model_dir, const TokenizerSpec& spec, GgufTokens& its) {
  const Tokenizer tokenizer = Tokenizer::open(model_dir);
  const std::string prefix = its.adds_blank ? std::string(kMetaspace) : std::string();
  for (const std::string_view text : {"a  b", " a ", "A", "\ufb01", "\uff21", "e\u0301"}) {
    std::string expected = prefix;
    for (const char c : text)
      expected += c == ' ' ? std::string(kMetaspace) : std::string(1, c);
    const std::string made = text_of(tokenizer, text);
    const bool has_unknown = !spec.unk.empty() && made.find(spec.unk) != made.npos;
    if (made != expected && !has_unknown)
      refuse(spec.file, fmt::format("makes '{}' of the text '{}'", made, text));
  }
}

void read_byte_level(const TokenizerSpec& spec, const Json& root, GgufTokens& its) {
  its.model = "gpt2";
  const Json& model = section_of(root, "model");
  for (const Json& part : parts_of(section_of(root, "normalizer"), "normalizers"))
    if (text_at(part, "type") != "NFC")
      refuse(spec.file, fmt::format("has the normalizer {}", text_at(part, "type")));
  its.pre = pre_of(spec.file, steps_of(spec.file, section_of(root, "pre_tokenizer")),
                   flag_at(model, "ignore_merges", false));
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!text_at(model, key).empty()) refuse(spec.file, fmt::format("has {}", key));
  for (const auto& [left, right] : merges_in(spec.file, model))
    its.merges.push_back(merge_of(spec.file, left, right));
}

/** vocab.json with merges.txt: a class of transformers says the rest. */
void read_vocab_and_merges(const fs::path& model_dir, const TokenizerSpec& spec, GgufTokens& its) {
  its.model = "gpt2";
  const bool is_words = dynamic_cast<const ByteLevel*>(spec.pre_tokenizer.get());
  its.pre = is_words ? "gpt-2" : "qwen2";
  const fs::path file = model_dir / "merges.txt";
  const std::string text = read_text_file(file);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) its.merges.emplace_back(line);
  }
}

void read_sentence_piece_json(const fs::path& model_dir,
                              const TokenizerSpec& spec,
                              const Json& root,
                              GgufTokens& its) {
  its.model = "llama";
  its.pre = "default";
  const Json& model = section_of(root, "model");
  for (const Json& part : parts_of(section_of(root, "normalizer"), "normalizers")) {
    if (text_at(part, "type") == "Prepend" && text_at(part, "prepend") == kMetaspace)
      its.adds_blank = true;
    else if (!is_replace(part, " ", kMetaspace))
      refuse(spec.file, fmt::format("has the normalizer {}", text_at(part, "type")));
  }
  bool splits = false;
  for (const Json& part : parts_of(section_of(root, "pre_tokenizer"), "pretokenizers")) {
    const std::string type = text_at(part, "type");
    const bool is_blanks = type == "Split" && text_at(section_of(part, "pattern"), "String") == " ";
    if (type == "Metaspace" && text_at(part, "replacement") == kMetaspace) {
      const std::string scheme = text_at(part, "prepend_scheme");
      its.adds_blank |=
          scheme.empty() ? flag_at(part, "add_prefix_space", true) : scheme != "never";
      splits = flag_at(part, "split", true);
    } else if (!is_blanks) {  // blanks are other letters by then
      refuse(spec.file, fmt::format("splits texts by a {}", type));
    }
  }
  if (splits)
    for (const std::string& token : spec.vocabulary)
      if (token.find(kMetaspace, 1) != std::string::npos)
        refuse(spec.file, fmt::format("splits texts at blanks, and has the token '{}'", token));
  if (flag_at(model, "ignore_merges", false)) refuse(spec.file, "has ignore_merges");
  set_tokens(spec, its);
  set_bytes(spec, its);
  set_scores(spec, merges_in(spec.file, model), its);
  check_normalizing(model_dir, spec, its);
}

void read_sentence_piece_model(const fs::path& model_dir,
                               const TokenizerSpec& spec,
                               GgufTokens& its) {
  its.model = "llama";
  its.pre = "default";
  const SentencePieceFile file = read_sentence_piece_file(spec.file);
  if (file.algorithm != SentencePieceFile::Algorithm::bpe)
    refuse(spec.file, "is a Unigram model, which none of the exported families has");
  its.adds_blank = text_of(Tokenizer::open(model_dir), "a").starts_with(kMetaspace);
  set_tokens(spec, its);
  constexpr double kNever = -1e9;
  its.scores.assign(its.tokens.size(), kNever);
  for (size_t id = 0; id < file.pieces.size() && id < its.tokens.size(); ++id) {
    const SentencePieceFile::Piece& piece = file.pieces[id];
    its.tokens[id] = piece.text;
    its.scores[id] = static_cast<double>(piece.score);
    if (piece.kind == SentencePieceFile::Kind::unused) its.kinds[id] = TokenKind::unused;
  }
  set_bytes(spec, its);
  check_normalizing(model_dir, spec, its);
}

}  // namespace

int32_t GgufTokens::find(const std::string& token) const {
  const auto found = std::ranges::find(tokens, token);
  return found == tokens.end() ? -1 : static_cast<int32_t>(found - tokens.begin());
}

GgufTokens read_gguf_tokens(const fs::path& model_dir) {
  if (!has_tokenizer(model_dir))
    throw Error(Fault::data, "gguf.tokenizer",
                fmt::format("'{}' has no tokenizer, and a GGUF file holds one", model_dir.string()),
                "put tokenizer.json there, as transformers' save_pretrained writes it");
  const TokenizerSpec spec = read_tokenizer_spec(model_dir);
  const std::string name = spec.file.filename().string();
  GgufTokens its;
  const bool gives_bytes = spec.pre_tokenizer && spec.pre_tokenizer->gives_bytes();
  if (const auto* bytes = dynamic_cast<const ByteLevel*>(spec.pre_tokenizer.get());
      bytes && bytes->adds_prefix_space())
    refuse(spec.file, "puts a blank before a text (add_prefix_space)");
  if (name == "tokenizer.json") {
    const JsonReader json = read_json_file(spec.file);
    const Json& root = json.value();
    const Json& model = section_of(root, "model");
    const std::string type = text_at(model, "type");
    if (!model.contains("merges"))
      refuse(spec.file, fmt::format("is of the type {}, and not BPE,", type.empty() ? "?" : type));
    if (gives_bytes) {
      read_byte_level(spec, root, its);
      set_tokens(spec, its);
    } else if (flag_at(model, "byte_fallback", false)) {
      read_sentence_piece_json(model_dir, spec, root, its);
    } else {
      refuse(spec.file, "is a BPE of characters without bytes");
    }
  } else if (name == "vocab.json") {
    read_vocab_and_merges(model_dir, spec, its);
    set_tokens(spec, its);
  } else if (name.find(".model") != name.npos && !holds_ranks(spec.file)) {
    read_sentence_piece_model(model_dir, spec, its);
  } else {
    refuse(spec.file, "is of a kind that llama.cpp does not run",
           "save the tokenizer with Hugging Face transformers, which writes a tokenizer.json");
  }
  fill_holes(its);
  set_ids(spec, its);
  if (its.model == "llama" && its.unk >= 0)
    its.kinds[static_cast<size_t>(its.unk)] = TokenKind::unknown;
  return its;
}

}  // namespace ferry::text
