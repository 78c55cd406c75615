// Reads files of ranks: tiktoken's, a token in base64 and its rank a line, and Mistral's
// tekken.json. A token that was merged sooner has a lower rank, so the ranks say which merges there
// are. The stages are those that Hugging Face's converters put around them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "src/files/plain_file.h"
#include "src/text/base64.h"
#include "src/text/byte_letters.h"
#include "src/text/decoders/byte_level_decoder.h"
#include "src/text/models/bpe.h"
#include "src/text/pre_tokenizers/byte_level.h"
#include "src/text/pre_tokenizers/split.h"
#include "src/text/registry.h"
#include "src/text/spec/tokenizer_spec.h"
#include "src/text/token_map.h"

namespace ferry::text {
namespace {

constexpr std::string_view kWords =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwenWords =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

/** The special tokens of tekken files that name none. */
constexpr std::array<std::string_view, 20> kTekkenSpecials = {
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
};

/** Splits "IQ== 0" in two; nothing if the line is not so. Whisper writes a token without bytes,
 * that no text has, as "=". */
std::optional<std::pair<std::string, uint64_t>> read_rank(std::string_view line) {
  const size_t blank = line.find(' ');
  if (blank == line.npos) return std::nullopt;
  const std::string_view written = line.substr(0, blank);
  const bool is_empty = written == "=";
  std::optional<std::string> token = bytes_of_base64(is_empty ? "" : written);
  const std::string_view digits = line.substr(blank + 1);
  uint64_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (!token || token->empty() != is_empty || error != std::errc() ||
      end != digits.data() + digits.size())
    return std::nullopt;
  return std::pair{std::move(*token), rank};
}

/** The tokens by rank. */
std::vector<std::string> read_tiktoken(const std::filesystem::path& file) {
  const std::string bytes = read_text_file(file);
  std::vector<std::pair<std::string, uint64_t>> lines;
  int64_t n_line = 0;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t newline = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view line = std::string_view(bytes).substr(begin, newline - begin);
    begin = newline + 1;
    ++n_line;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    auto rank = read_rank(line);
    if (!rank)
      fail(file,
           fmt::format("line {} is '{}', expected a token in base64 and its rank", n_line, line),
           kFetchAgain);
    lines.push_back(std::move(*rank));
  }
  std::vector<std::string> tokens(lines.size());
  std::vector<bool> given(lines.size());
  for (auto& [token, rank] : lines) {
    if (rank >= tokens.size() || given[rank])
      fail(file,
           fmt::format("gives the rank {} {}", rank,
                       rank < tokens.size() ? "twice" : "beyond its last token"),
           "the ranks have to be 0, 1, 2, ... without a gap");
    tokens[rank] = std::move(token);
    given[rank] = true;
  }
  return tokens;
}

struct Ranks {
  std::vector<std::string> tokens;    // the bytes of each, by rank
  std::vector<std::string> specials;  // those that come before them in the vocabulary
  std::string words;                  // the pattern that text is cut by
};

Ranks read_tekken(const std::filesystem::path& file) {
  const JsonReader root = read_json_file(file), config = root.at("config");
  Ranks ranks;
  ranks.words = config.text("pattern");
  if (const auto list = root.find("special_tokens")) {
    ranks.specials.resize(list->size());
    for (size_t i = 0; i < list->size(); ++i) {
      const JsonReader entry = list->at(i);
      const int64_t rank = entry.integer("rank", 0, static_cast<int64_t>(list->size()) - 1);
      std::string& token = ranks.specials[static_cast<size_t>(rank)];
      if (!token.empty()) entry.fail(fmt::format("has the rank {} again", rank), kFetchAgain);
      token = entry.text("token_str");
      if (token.empty()) entry.fail("is empty", kFetchAgain);
    }
  } else {
    ranks.specials.assign(kTekkenSpecials.begin(), kTekkenSpecials.end());
  }
  const auto n_named = static_cast<int64_t>(ranks.specials.size());
  const int64_t n_specials =
      config.integer("default_num_special_tokens", n_named, 1 << 20, n_named);
  for (int64_t i = n_named; i < n_specials; ++i)
    ranks.specials.push_back(fmt::format("<SPECIAL_{}>", i));

  const JsonReader vocab = root.at("vocab");
  auto n_tokens = static_cast<int64_t>(vocab.size());
  n_tokens = std::min(
      n_tokens, config.integer("default_vocab_size", n_specials, kId_max, n_specials + n_tokens) -
                    n_specials);
  for (int64_t i = 0; i < n_tokens; ++i) {
    const JsonReader entry = vocab.at(static_cast<size_t>(i));
    auto token = bytes_of_base64(entry.text("token_bytes"));
    if (!token || token->empty())
      entry.at("token_bytes").fail("is no token in base64", kFetchAgain);
    ranks.tokens.push_back(std::move(*token));
  }
  return ranks;
}

std::string letters_of(std::string_view bytes) {
  std::string letters;
  for (const char byte : bytes)
    append_utf8(letters, kByteLetters[static_cast<unsigned char>(byte)]);
  return letters;
}

void check_unique(const TokenizerSpec& spec) {
  const TokenMap map(spec.vocabulary);
  for (size_t id = 0; id < spec.vocabulary.size(); ++id)
    if (!spec.vocabulary[id].empty() && map.find(spec.vocabulary[id]) != static_cast<int32_t>(id))
      fail(spec.file, fmt::format("has the token '{}' twice", spec.vocabulary[id]), kFetchAgain);
}

}  // namespace

bool holds_ranks(const std::filesystem::path& file) {
  const PlainFile opened = open_plain_file(file);
  std::array<char, 512> buffer{};
  const std::string_view begin(buffer.data(), read_some(opened, file, buffer));
  const size_t newline = begin.find('\n');
  return newline != begin.npos && read_rank(begin.substr(0, newline)).has_value();
}

void read_rank_file(const std::filesystem::path& model_dir,
                    const JsonReader* config,
                    TokenizerSpec& spec) {
  const bool is_tekken = spec.file.extension() == ".json";
  Ranks ranks;
  if (is_tekken) {
    ranks = read_tekken(spec.file);
  } else {
    const TokenizerClass found = read_class(model_dir, config);
    const bool is_qwen = spec.file.filename() == "qwen.tiktoken" ||
                         found.name.starts_with("QWen") || found.name.starts_with("Qwen") ||
                         found.model_type.starts_with("qwen");
    ranks.tokens = read_tiktoken(spec.file);
    ranks.words = is_qwen ? kQwenWords : kWords;
  }
  if (ranks.tokens.empty()) fail(spec.file, "has no tokens", kFetchAgain);
  spec.cls = spec.sep = spec.mask = spec.pad = spec.unk = spec.bos = spec.eos = "";
  if (is_tekken) {
    spec.unk = "<unk>";
    spec.bos = "<s>";
    spec.eos = "</s>";
    spec.pad = "<pad>";
  }
  if (config) read_names(*config, spec);

  spec.vocabulary = ranks.specials;
  for (const std::string& token : ranks.tokens)
    spec.vocabulary.push_back(letters_of(token));
  check_unique(spec);
  BpeOptions options;
  options.bytes = true;
  options.ignore_merges = true;
  Merges merges = merges_of_ranks(ranks.tokens);
  const auto n_specials = static_cast<int32_t>(ranks.specials.size());
  for (Merge& merge : merges)
    merge = {merge.left + n_specials, merge.right + n_specials, merge.merged + n_specials};
  spec.model = std::make_unique<Bpe>(std::move(options), spec.vocabulary, merges);

  KnownTokens known(spec.file, spec.vocabulary);
  add_configured_tokens(config, known, spec, true);
  add_usual_tokens(known, spec);
  for (size_t id = 0; id < ranks.specials.size(); ++id)
    if (!known.is_added(ranks.specials[id]))
      add_token({static_cast<int32_t>(id), ranks.specials[id], false, false, false, false, true},
                known, spec);

  try {
    std::vector<std::unique_ptr<PreTokenizer>> parts;
    parts.push_back(std::make_unique<Split>(Pattern(ranks.words), Behavior::isolated, false));
    parts.push_back(std::make_unique<ByteLevel>(false, false));
    spec.pre_tokenizer = std::make_unique<PreTokenizerSequence>(std::move(parts));
  } catch (const std::invalid_argument& error) {
    fail(spec.file, fmt::format("has the pattern {}, {}", ranks.words, error.what()), kSaveAgain);
  }
  spec.decoder = std::make_unique<ByteLevelDecoder>();
  spec.post_processor = bos_and_eos(config, false, known, spec);
}

}  // namespace ferry::text
