// Reads vocab.txt, a token per line, with what tokenizer_config.json says about lower case, accents
// and added tokens.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/base/utf8.h"
#include "src/files/plain_file.h"
#include "src/text/decoders/wordpiece_decoder.h"
#include "src/text/models/wordpiece.h"
#include "src/text/normalizers/bert_normalizer.h"
#include "src/text/post_processors/template_processing.h"
#include "src/text/pre_tokenizers/bert_pre_tokenizer.h"
#include "src/text/registry.h"
#include "src/text/spec/tokenizer_spec.h"

namespace ferry::text {
namespace {

void read_lines(TokenizerSpec& spec) {
  const std::string bytes = read_text_file(spec.file);
  std::unordered_map<std::string_view, size_t> lines;  // of each token, from 0
  size_t n_line = 0;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t newline = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view token = std::string_view(bytes).substr(begin, newline - begin);
    begin = newline + 1;
    ++n_line;
    if (first_invalid_utf8(token) != token.npos)
      fail(spec.file, fmt::format("line {} is not UTF-8", n_line), "fetch the model's files again");
    while (!token.empty()) {  // white space at the end belongs to no token
      size_t before = token.size();
      if (!(spec.table->flags(previous_code_point(token, before)) & CharTable::kSpace)) break;
      token.remove_suffix(token.size() - before);
    }
    // The line is the id: an empty one is a hole, and of two that are equal the later one counts.
    const auto [before, is_new] = lines.try_emplace(token, n_line - 1);
    if (!is_new) {
      ++spec.n_holes;
      spec.vocabulary[before->second].clear();
      before->second = n_line - 1;
    }
    spec.vocabulary.emplace_back(token);
  }
  if (lines.empty())
    fail(spec.file, "is empty, expected a token per line", "fetch the model's files again");
}

}  // namespace

void read_vocab_txt(const JsonReader* config, TokenizerSpec& spec) {
  read_lines(spec);
  BertNormalizerOptions normalizer{true, true, true, true};
  if (config) {
    normalizer.lowercase = config->flag("do_lower_case", true);
    normalizer.strip_accents = config->flag("strip_accents", normalizer.lowercase);
    normalizer.handle_chinese_chars = config->flag("tokenize_chinese_chars", true);
  }
  KnownTokens known(spec.file, spec.vocabulary, spec.n_holes);
  WordPieceOptions word_piece;
  word_piece.unknown_id = known.require(spec.unk, "unknown");
  const int32_t cls = known.require(spec.cls, "cls"), sep = known.require(spec.sep, "sep");
  add_configured_tokens(config, known, spec);
  add_usual_tokens(known, spec);
  spec.normalizer = std::make_unique<BertNormalizer>(normalizer, spec.table);
  spec.pre_tokenizer = std::make_unique<BertPreTokenizer>(spec.table);
  spec.model = std::make_unique<WordPiece>(word_piece, spec.vocabulary);
  spec.post_processor = TemplateProcessing::bert(cls, sep);
  spec.decoder = std::make_unique<WordPieceDecoder>(word_piece.continuing_prefix, true);
}

}  // namespace ferry::text
