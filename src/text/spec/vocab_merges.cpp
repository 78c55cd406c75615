// Reads vocab.json, tokens and their ids, with merges.txt, a merge per line, as byte-level models
// without a tokenizer.json have them. Which stages go with them is known by the name of the
// tokenizer's class in tokenizer_config.json, or else by config.json's model type.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include "src/base/utf8.h"
#include "src/files/plain_file.h"
#include "src/text/decoders/byte_level_decoder.h"
#include "src/text/models/bpe.h"
#include "src/text/normalizers/normal_forms.h"
#include "src/text/post_processors/byte_level_offsets.h"
#include "src/text/pre_tokenizers/byte_level.h"
#include "src/text/registry.h"
#include "src/text/spec/tokenizer_spec.h"

namespace ferry::text {
namespace {

constexpr std::string_view kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

enum class MergesKind { gpt2, roberta, qwen2 };

struct MergesClass {
  std::string_view name, model_type;
  MergesKind kind;
};
constexpr MergesClass kMergesClasses[] = {
    {"GPT2Tokenizer", "gpt2", MergesKind::gpt2},
    {"GPT2Tokenizer", "opt", MergesKind::gpt2},
    {"RobertaTokenizer", "roberta", MergesKind::roberta},
    {"BartTokenizer", "bart", MergesKind::roberta},
    {"Qwen2Tokenizer", "qwen2", MergesKind::qwen2},
    {"Qwen2Tokenizer", "qwen3", MergesKind::qwen2},
};

MergesKind kind_of(const std::filesystem::path& model_dir, const JsonReader* config) {
  const TokenizerClass found = read_class(model_dir, config);
  for (const MergesClass& known : kMergesClasses)
    if (found.name.empty() ? known.model_type == found.model_type : known.name == found.name)
      return known.kind;
  fail_unknown_class(model_dir / "vocab.json", found);
}

/** The pairs of the bytes of merges.txt, which have to outlive them. */
TokenPairs read_merges_txt(const std::filesystem::path& file, const std::string& bytes) {
  TokenPairs merges;
  int64_t n_line = 0;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t newline = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view line = std::string_view(bytes).substr(begin, newline - begin);
    begin = newline + 1;
    ++n_line;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version") || line.empty()) continue;
    if (first_invalid_utf8(line) != line.npos)
      fail(file, fmt::format("line {} is not UTF-8", n_line), kFetchAgain);
    const size_t blank = line.find(' ');
    if (blank == line.npos || line.find(' ', blank + 1) != line.npos)
      fail(file, fmt::format("line {} is '{}', expected two tokens and a blank", n_line, line),
           kFetchAgain);
    merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return merges;
}

}  // namespace

void set_byte_level_names(const std::filesystem::path& model_dir,
                          const JsonReader* config,
                          TokenizerSpec& spec) {
  if (kind_of(model_dir, config) == MergesKind::roberta) {
    spec.bos = spec.cls = "<s>";
    spec.eos = spec.sep = "</s>";
    spec.unk = "<unk>";
    spec.pad = "<pad>";
    spec.mask = "<mask>";
  } else {
    spec.bos = spec.eos = spec.unk = "<|endoftext|>";
    spec.cls = spec.sep = spec.pad = spec.mask = "";
  }
}

void read_vocab_merges(const std::filesystem::path& model_dir,
                       const JsonReader* config,
                       TokenizerSpec& spec) {
  const MergesKind kind = kind_of(model_dir, config);
  spec.vocabulary = read_vocabulary(read_json_file(spec.file));
  BpeOptions options;
  options.bytes = true;
  const std::filesystem::path merges_txt = model_dir / "merges.txt";
  try {
    const std::string bytes = read_text_file(merges_txt);
    const Merges merges = find_merges(spec.vocabulary, read_merges_txt(merges_txt, bytes), "");
    spec.model = std::make_unique<Bpe>(std::move(options), spec.vocabulary, merges);
  } catch (const std::invalid_argument& error) {
    fail(merges_txt, error.what(), kFetchAgain);
  }
  spec.n_holes = static_cast<size_t>(std::ranges::count(spec.vocabulary, std::string()));
  KnownTokens known(spec.file, spec.vocabulary, spec.n_holes);
  if (const int32_t mask = known.find(spec.mask);
      kind == MergesKind::roberta && mask >= 0 && !(config && config->find("added_tokens_decoder")))
    add_token({mask, spec.mask, false, true, false, false, true}, known, spec);
  add_configured_tokens(config, known, spec);
  add_usual_tokens(known, spec);

  const bool prefix_space = config && config->flag("add_prefix_space", false);
  if (kind == MergesKind::qwen2) {
    spec.normalizer = std::make_unique<NormalForm>(false, true, spec.table);
    std::vector<std::unique_ptr<PreTokenizer>> parts;
    parts.push_back(std::make_unique<Split>(Pattern(kQwen2Words), Behavior::isolated, false));
    parts.push_back(std::make_unique<ByteLevel>(prefix_space, false));
    spec.pre_tokenizer = std::make_unique<PreTokenizerSequence>(std::move(parts));
  } else {
    spec.pre_tokenizer = std::make_unique<ByteLevel>(prefix_space, true);
  }
  if (kind == MergesKind::roberta)
    spec.post_processor = std::make_unique<RobertaProcessing>(
        known.require(spec.cls, "cls"), known.require(spec.sep, "sep"),
        ByteLevelOffsets(prefix_space, !config || config->flag("trim_offsets", true)));
  else
    spec.post_processor = bos_and_eos(config, false, known, spec);
  spec.decoder = std::make_unique<ByteLevelDecoder>();
}

}  // namespace ferry::text
